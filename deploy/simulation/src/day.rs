//! A day of the fleet, second by second, from the curves of its pools.
//!
//! Balancers split the load by capacity, so that all pools have the same utilisation. The curves
//! hold at each second: a queue that lasts less than the deadline fills and empties within one.

use crate::autoscaler::ScalingMetric;
use crate::curves::{GRID, PoolCurve};
use crate::fleet::FleetSettings;
use crate::latency::LatencyHistogram;
use crate::pool::{LOST_ZONE, PoolState, ZONES};
use crate::random::RandomStream;

pub const DAY_S: u32 = 86_400;
const HOUR: f64 = 3600.0;

/// What happens, in seconds of the day.
pub const LOSS: (f64, f64) = (11.0 * HOUR, 12.0 * HOUR);
/// Balancers send requests to a lost zone for so long.
const LOSS_SEEN_S: f64 = 2.0;
/// Kubernetes replaces the pods of a lost node after this time.
pub const EVICTION_S: f64 = 300.0;
pub const UPGRADE: f64 = 15.0 * HOUR;
pub const UPGRADE_SHARE: f64 = 0.05;
/// The drain delay, and the requests behind it.
pub const DRAIN_S: f64 = 25.0;
const CROWD: f64 = 20.5 * HOUR;
const CROWD_S: f64 = 900.0;
const CROWD_FACTOR: f64 = 1.5;
const SCALE_EVERY_S: u32 = 15;
/// Readings are the mean of this time.
const READING_S: usize = 30;

/// Parts of the day of which errors are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayPart {
    Quiet,
    ZoneLoss,
    Upgrade,
    FlashCrowd,
}

impl DayPart {
    pub const ALL: [Self; 4] = [Self::Quiet, Self::ZoneLoss, Self::Upgrade, Self::FlashCrowd];

    fn at(time: f64) -> Self {
        let within = |begin: f64, length: f64| (begin..begin + length).contains(&time);
        match () {
            () if within(LOSS.0, 1200.0) => Self::ZoneLoss,
            () if within(UPGRADE, 3600.0) => Self::Upgrade,
            () if within(CROWD, CROWD_S + 300.0) => Self::FlashCrowd,
            () => Self::Quiet,
        }
    }
}

/// Requests a second, without the noise.
pub fn load_at(peak_rps: f64, time: f64) -> f64 {
    // Lowest at 04:00, highest at 16:00.
    let wave = (std::f64::consts::TAU * (time / HOUR - 10.0) / 24.0).sin();
    let into = time - CROWD;
    let crowd = match into {
        into if (0.0..CROWD_S).contains(&into) => (into / 60.0).min(1.0),
        into if (CROWD_S..CROWD_S + 300.0).contains(&into) => 1.0 - (into - CROWD_S) / 300.0,
        _ => 0.0,
    };
    peak_rps * (0.6 + 0.4 * wave) * (1.0 + CROWD_FACTOR * crowd)
}

/// One minute, for plots.
#[derive(Clone, Copy, Debug, Default)]
pub struct DaySample {
    pub hour: f64,
    pub load: f64,
    pub capacity: f64,
    pub replicas: f64,
    pub p99_ms: f64,
    pub error_share: f64,
}

/// What the day was like.
#[derive(Clone, Debug, Default)]
pub struct DayReport {
    pub requests: f64,
    pub errors: f64,
    /// In the order of [`DayPart::ALL`].
    pub errors_by_part: [f64; 4],
    pub latency: LatencyHistogram,
    pub cost: f64,
    pub mean_replicas: f64,
    pub most_replicas: f64,
    pub samples: Vec<DaySample>,
}

/// Simulates a day. `curves`: of the pools, in their order.
pub fn run_day(fleet: &FleetSettings, curves: &[PoolCurve], metric: ScalingMetric) -> DayReport {
    let pools = fleet.pools.iter().zip(curves);
    let mut pools: Vec<PoolState> =
        pools.map(|(pool, curve)| PoolState::new(pool, curve)).collect();
    let (mut report, mut random) = (DayReport::default(), RandomStream::new(fleet.seed));
    let mut recent = [0.7; READING_S];
    let mut noise = 1.0;
    for second in 0..DAY_S {
        let now = f64::from(second);
        if second % 60 == 0 {
            noise = 1.0 + 0.03 * (2.0 * random.next_unit() - 1.0);
        }
        let zone_share = lost_share(&pools);
        pools.iter_mut().for_each(|pool| {
            pool.advance(now);
            pool.suffer(now);
        });
        let load = load_at(fleet.peak_rps, now) * noise;
        let capacity: f64 = pools.iter().map(PoolState::capacity).sum();
        let utilization = load / capacity.max(1.0);
        recent[second as usize % READING_S] = utilization;
        let unseen = (LOSS.0..LOSS.0 + LOSS_SEEN_S).contains(&now);
        let lost = if unseen { zone_share.max(1.0 / ZONES as f64) } else { 0.0 };
        let sample = count_second(&mut pools, &mut report, (now, load, capacity), lost);
        if second % 60 == 59 {
            report.samples.push(sample);
        }
        if second % SCALE_EVERY_S == 0 && second > 0 {
            let mean = recent.iter().sum::<f64>() / READING_S as f64;
            pools.iter_mut().for_each(|pool| pool.scale(metric, mean, now));
        }
    }
    report.mean_replicas /= f64::from(DAY_S);
    for pool in &pools {
        for (point, requests) in pool.curve.points.iter().zip(&pool.requests) {
            report.latency.merge(&point.latency, requests / point.latency.count().max(1.0));
        }
    }
    report
}

/// Share of the capacity in the zone that will be lost.
fn lost_share(pools: &[PoolState]) -> f64 {
    let capacity = |pool: &PoolState, count: f64| count * pool.settings.model.capacity();
    let zone: f64 = pools.iter().map(|pool| capacity(pool, pool.ready[LOST_ZONE])).sum();
    let all: f64 = pools.iter().map(|pool| capacity(pool, pool.ready.iter().sum())).sum();
    if all > 0.0 { zone / all } else { 0.0 }
}

/// Requests, errors and cost of a second. `lost`: share of requests sent to a lost zone.
fn count_second(
    pools: &mut [PoolState],
    report: &mut DayReport,
    (now, load, capacity): (f64, f64, f64),
    lost: f64,
) -> DaySample {
    let utilization = load / capacity.max(1.0);
    let (mut failing, mut p99_ms) = (lost, 0.0f64);
    for pool in pools.iter_mut() {
        let share = pool.capacity() / capacity.max(1.0);
        let errors = pool.curve.error_share(utilization);
        failing += (1.0 - lost) * share * errors;
        p99_ms = p99_ms.max(pool.curve.at(utilization, |point| point.p99_ms));
        let served = load * share * (1.0 - lost) * (1.0 - errors);
        let above = GRID.partition_point(|point| *point < utilization);
        let (low, high) = (above.saturating_sub(1), above.min(GRID.len() - 1));
        let (.., second) = pool.curve.around(utilization);
        pool.requests[low] += served * (1.0 - second);
        pool.requests[high] += served * second;
        report.cost += pool.paid() * pool.settings.price_per_hour / HOUR;
    }
    let replicas: f64 = pools.iter().map(PoolState::serving).sum();
    let parts = DayPart::ALL.iter().zip(&mut report.errors_by_part);
    for (part, errors) in parts {
        *errors += if *part == DayPart::at(now) { load * failing } else { 0.0 };
    }
    report.requests += load;
    report.errors += load * failing;
    report.mean_replicas += replicas;
    report.most_replicas = report.most_replicas.max(replicas);
    DaySample { hour: now / HOUR, load, capacity, replicas, p99_ms, error_share: failing }
}
