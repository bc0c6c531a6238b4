//! A pool during the day: replicas in zones that start, drain, are lost and are replaced.

use crate::autoscaler::{MetricReading, PodAutoscaler, ScalingMetric};
use crate::curves::{GRID, PoolCurve};
use crate::day::{DRAIN_S, EVICTION_S, LOSS, UPGRADE, UPGRADE_SHARE};
use crate::fleet::PoolSettings;

pub const ZONES: usize = 3;
/// The zone that is lost.
pub const LOST_ZONE: usize = 1;

/// A pool during the day.
pub struct PoolState<'a> {
    pub settings: &'a PoolSettings,
    pub curve: &'a PoolCurve,
    autoscaler: PodAutoscaler,
    pub ready: [f64; ZONES],
    /// Time at which they are ready, zone, number.
    starting: Vec<(f64, usize, f64)>,
    /// In a lost zone, until they are replaced.
    lost: f64,
    /// Time at which they have ended, number: paid for.
    draining: Vec<(f64, f64)>,
    /// Replaced by the upgrade at this time.
    upgrading: f64,
    /// Requests by point of the curve.
    pub requests: Vec<f64>,
}

impl<'a> PoolState<'a> {
    /// At midnight, with the replicas of the fixed fleet.
    pub fn new(settings: &'a PoolSettings, curve: &'a PoolCurve) -> Self {
        let in_zone = |zone: usize| ((settings.replicas + zone as f64) / ZONES as f64).floor();
        let (least, most) = ((settings.replicas / 5.0).ceil(), settings.replicas * 2.0);
        Self {
            settings,
            curve,
            autoscaler: PodAutoscaler::new(least, most),
            ready: std::array::from_fn(in_zone),
            starting: Vec::new(),
            lost: 0.0,
            draining: Vec::new(),
            upgrading: 0.0,
            requests: vec![0.0; GRID.len()],
        }
    }
}

impl PoolState<'_> {
    /// Replicas to which requests go.
    pub fn serving(&self) -> f64 {
        let away = if self.settings.surge { 0.0 } else { self.upgrading };
        (self.ready.iter().sum::<f64>() - away).max(0.0)
    }

    /// Requests a second.
    pub fn capacity(&self) -> f64 {
        self.serving() * self.settings.model.capacity()
    }

    /// What the Deployment counts.
    fn current(&self) -> f64 {
        let starting: f64 = self.starting.iter().map(|(.., count)| count).sum();
        self.ready.iter().sum::<f64>() + starting + self.lost
    }

    /// Replicas that cost money.
    pub fn paid(&self) -> f64 {
        let draining: f64 = self.draining.iter().map(|(_, count)| count).sum();
        let surge = if self.settings.surge { self.upgrading } else { 0.0 };
        self.current() + draining + surge
    }

    /// What was started or ended before is there or gone.
    pub fn advance(&mut self, now: f64) {
        let ready = &mut self.ready;
        self.starting.retain(|(when, zone, count)| {
            let due = *when <= now;
            ready[*zone] += if due { *count } else { 0.0 };
            !due
        });
        self.draining.retain(|(until, _)| *until > now);
    }

    fn place(&mut self, count: f64, now: f64, usable: impl Fn(usize) -> bool) {
        let mut totals = self.ready;
        self.starting.iter().for_each(|(_, zone, count)| totals[*zone] += count);
        let when = now + self.settings.cold_start.seconds();
        let mut placed = [0.0; ZONES];
        for _ in 0..count as usize {
            let zones = (0..ZONES).filter(|zone| usable(*zone));
            let Some(zone) = zones.min_by(|a, b| totals[*a].total_cmp(&totals[*b])) else { return };
            totals[zone] += 1.0;
            placed[zone] += 1.0;
        }
        let zones = placed.iter().enumerate().filter(|(_, count)| **count > 0.0);
        self.starting.extend(zones.map(|(zone, count)| (when, zone, *count)));
    }

    /// Replicas that have not started go first.
    fn remove(&mut self, mut count: f64, now: f64) {
        while let Some((.., starting)) = self.starting.last_mut() {
            let gone = starting.min(count);
            (*starting, count) = (*starting - gone, count - gone);
            if *starting > 0.0 {
                return;
            }
            self.starting.pop();
        }
        self.draining.push((now + DRAIN_S, count));
        for _ in 0..count as usize {
            let fullest = (0..ZONES).max_by(|a, b| self.ready[*a].total_cmp(&self.ready[*b]));
            if let Some(zone) = fullest {
                self.ready[zone] = (self.ready[zone] - 1.0).max(0.0);
            }
        }
    }

    fn readings(&self, metric: ScalingMetric, utilization: f64) -> Vec<MetricReading> {
        let (curve, pool) = (self.curve, self.settings);
        let busy = curve.at(utilization, |point| point.busy);
        let saturation =
            MetricReading { mean: curve.at(utilization, |p| p.saturation), target: 0.3 };
        match metric {
            ScalingMetric::Cpu => {
                vec![MetricReading { mean: busy * pool.cpu_of_busy, target: 0.65 }]
            }
            ScalingMetric::QueueLength => vec![MetricReading {
                mean: curve.at(utilization, |p| p.waiting),
                target: pool.queue_target,
            }],
            ScalingMetric::Saturation => vec![saturation],
            ScalingMetric::EarlySaturation => vec![MetricReading { target: 0.02, ..saturation }],
            ScalingMetric::DeviceAndSaturation => {
                vec![MetricReading { mean: busy, target: pool.busy_target }, saturation]
            }
            ScalingMetric::Fixed => Vec::new(),
        }
    }

    /// Asks the autoscaler.
    pub fn scale(&mut self, metric: ScalingMetric, utilization: f64, now: f64) {
        let readings = self.readings(metric, utilization);
        if readings.is_empty() {
            return;
        }
        let current = self.current();
        let wanted = self.autoscaler.recommend(current, self.serving(), &readings);
        if wanted > current {
            self.place((wanted - current).round(), now, |zone| is_usable(zone, now));
        } else if wanted < current {
            self.remove((current - wanted).round(), now);
        }
    }

    /// The zone that is lost, and the upgrade.
    pub fn suffer(&mut self, now: f64) {
        if now == LOSS.0 {
            let starting: f64 = self
                .starting
                .iter()
                .filter(|(_, zone, _)| *zone == LOST_ZONE)
                .map(|(.., n)| n)
                .sum();
            self.starting.retain(|(_, zone, _)| *zone != LOST_ZONE);
            self.lost = std::mem::take(&mut self.ready[LOST_ZONE]) + starting;
        }
        if now == LOSS.0 + EVICTION_S {
            let lost = std::mem::take(&mut self.lost);
            self.place(lost, now, |zone| is_usable(zone, now));
        }
        let wave = DRAIN_S + self.settings.cold_start.seconds_on_node();
        let upgrading = (UPGRADE..UPGRADE + wave / UPGRADE_SHARE).contains(&now);
        let total: f64 = self.ready.iter().sum();
        self.upgrading = if upgrading { (UPGRADE_SHARE * total).ceil() } else { 0.0 };
    }
}

fn is_usable(zone: usize, now: f64) -> bool {
    zone != LOST_ZONE || !(LOSS.0..LOSS.1).contains(&now)
}
