//! The formula of Kubernetes' horizontal pod autoscaler, with its tolerance, rates and window.

use std::collections::VecDeque;

/// What replicas are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalingMetric {
    /// CPU time, which says little about servers whose work is on a GPU.
    Cpu,
    /// Requests that wait.
    QueueLength,
    /// Predicted wait over the deadline: a third of it.
    Saturation,
    /// The same with a target that is reached before the servers are full.
    EarlySaturation,
    /// The share of time in which instances are busy, and the saturation: the larger result.
    DeviceAndSaturation,
    /// A fixed number.
    Fixed,
}

impl ScalingMetric {
    pub const ALL: [Self; 6] = [
        Self::Fixed,
        Self::Cpu,
        Self::QueueLength,
        Self::Saturation,
        Self::EarlySaturation,
        Self::DeviceAndSaturation,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::QueueLength => "queue length",
            Self::Saturation => "saturation, 0.3",
            Self::EarlySaturation => "saturation, 0.02",
            Self::DeviceAndSaturation => "utilisation and saturation",
            Self::Fixed => "fixed fleet",
        }
    }
}

/// A metric of a pool: the mean of its ready replicas, and what is aimed at.
#[derive(Clone, Copy, Debug)]
pub struct MetricReading {
    pub mean: f64,
    pub target: f64,
}

/// The autoscaler of one pool, asked every 15 s.
#[derive(Clone, Debug)]
pub struct PodAutoscaler {
    pub least: f64,
    pub most: f64,
    /// Recommendations of the window for scaling down.
    recent: VecDeque<f64>,
}

const TOLERANCE: f64 = 0.1;
/// 300 s of recommendations.
const WINDOW: usize = 20;
/// 10 % a minute.
const LEAST_DOWN: f64 = 0.975;

impl PodAutoscaler {
    pub fn new(least: f64, most: f64) -> Self {
        Self { least, most, recent: VecDeque::new() }
    }

    /// The new number of replicas. `ready` of `current` replicas have the readings; replicas that
    /// start count as idle.
    pub fn recommend(&mut self, current: f64, ready: f64, readings: &[MetricReading]) -> f64 {
        let desired = readings.iter().map(|reading| desired_for(current, ready, reading));
        let desired = desired.fold(0.0, f64::max).clamp(self.least, self.most);
        self.recent.push_back(desired);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        if desired >= current {
            // At most twice as many, or four more.
            return desired.min((2.0 * current).max(current + 4.0));
        }
        let highest = self.recent.iter().copied().fold(desired, f64::max);
        highest.min(current).max((current * LEAST_DOWN).floor()).max(self.least)
    }
}

fn desired_for(current: f64, ready: f64, reading: &MetricReading) -> f64 {
    let ratio = reading.mean / reading.target;
    if (ratio - 1.0).abs() <= TOLERANCE {
        return current;
    }
    let desired = (ready * ratio).ceil();
    // Replicas that start do not turn a rise into a fall.
    if ratio > 1.0 { desired.max(current) } else { desired }
}
