//! Curves: what a pool does at each utilisation under each policy, measured by [`crate::cluster`].
//! The day, which is too long to be simulated event by event, reads them.

use crate::cluster::{ClusterSettings, run_cluster};
use crate::latency::LatencyHistogram;
use crate::policy::BalancingPolicy;
use crate::replica::ServerModel;

/// Utilisations that are measured. Beyond 1 the pool is overloaded.
pub const GRID: [f64; 11] = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.2, 1.6];

/// A pool at one utilisation.
#[derive(Clone, Debug, Default)]
pub struct CurvePoint {
    pub utilization: f64,
    pub latency: LatencyHistogram,
    pub p99_ms: f64,
    pub error_share: f64,
    pub busy: f64,
    pub waiting: f64,
    pub saturation: f64,
}

/// Ascending utilisations.
#[derive(Clone, Debug, Default)]
pub struct PoolCurve {
    pub points: Vec<CurvePoint>,
}

/// How large the runs are.
#[derive(Clone, Copy, Debug)]
pub struct RunScale {
    pub replicas: usize,
    pub balancers: usize,
    pub warmup_ns: u64,
    pub measured_ns: u64,
    pub seed: u64,
}

/// The run of one point.
pub fn point_settings<'a>(
    model: &'a ServerModel,
    policy: BalancingPolicy,
    utilization: f64,
    scale: &RunScale,
) -> ClusterSettings<'a> {
    ClusterSettings {
        model,
        replicas: scale.replicas,
        balancers: scale.balancers,
        policy,
        utilization,
        slow_share: 0.05,
        speed_spread: 0.1,
        report_ns: 250_000_000,
        warmup_ns: scale.warmup_ns,
        measured_ns: scale.measured_ns,
        seed: scale.seed,
    }
}

/// Measures the curve of a pool.
pub fn measure_curve(model: &ServerModel, policy: BalancingPolicy, scale: &RunScale) -> PoolCurve {
    let measure = |utilization: f64| {
        let report = run_cluster(&point_settings(model, policy, utilization, scale));
        CurvePoint {
            utilization,
            p99_ms: report.latency.quantile_ms(0.99),
            error_share: report.error_share(),
            busy: report.busy,
            waiting: report.waiting,
            saturation: report.saturation,
            latency: report.latency,
        }
    };
    PoolCurve { points: GRID.map(measure).to_vec() }
}

impl PoolCurve {
    /// The points around a utilisation, and the share of the second.
    pub fn around(&self, utilization: f64) -> (&CurvePoint, &CurvePoint, f64) {
        let above = self.points.partition_point(|point| point.utilization < utilization);
        let (low, high) = (above.saturating_sub(1), above.min(self.points.len() - 1));
        let (low, high) = (&self.points[low], &self.points[high]);
        let width = high.utilization - low.utilization;
        let share = if width > 0.0 { (utilization - low.utilization) / width } else { 0.0 };
        (low, high, share)
    }

    /// A value at a utilisation, between the measured ones by a straight line.
    pub fn at(&self, utilization: f64, value: impl Fn(&CurvePoint) -> f64) -> f64 {
        let (low, high, share) = self.around(utilization);
        value(low) + share * (value(high) - value(low))
    }

    /// The share of requests that fail. Beyond the last point all that exceed the capacity do.
    pub fn error_share(&self, utilization: f64) -> f64 {
        let measured = self.at(utilization, |point| point.error_share);
        let last = self.points.last().map_or(1.0, |point| point.utilization);
        if utilization > last { measured.max(1.0 - 1.0 / utilization) } else { measured }
    }

    /// The highest utilisation at which p99 and errors stay within limits.
    pub fn highest(&self, p99_ms: f64, error_share: f64) -> f64 {
        let steps = (0..=160).map(|step| f64::from(step) / 100.0);
        let within = |utilization: &f64| {
            self.at(*utilization, |point| point.p99_ms) <= p99_ms
                && self.error_share(*utilization) <= error_share
        };
        steps.take_while(within).last().unwrap_or(0.0)
    }
}
