//! The experiments of docs/scale.md: their tables and plots.

use crate::autoscaler::ScalingMetric;
use crate::cluster::run_cluster;
use crate::curves::{PoolCurve, RunScale, measure_curve, point_settings};
use crate::day::{DayReport, run_day};
use crate::fleet::{FleetSettings, PoolSettings};
use crate::latency::LatencyHistogram;
use crate::plot::{LinePlot, PlotLine};
use crate::policy::BalancingPolicy;
use std::fmt::Write;

/// The page's limits of a good service.
const P99_MS: f64 = 80.0;
const ERROR_SHARE: f64 = 1e-4;

/// Between the points of a plot of the day.
const PLOT_MINUTES: usize = 4;

/// Tables in Markdown, and plots by file name.
#[derive(Default)]
pub struct ExperimentResults {
    pub tables: String,
    pub plots: Vec<(&'static str, String)>,
}

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentSize {
    /// Share of the fleet's replicas for curves, and for the run at the peak.
    pub curve_share: f64,
    pub peak_share: f64,
    pub balancers: usize,
    pub warmup_ns: u64,
    pub measured_ns: u64,
}

impl ExperimentSize {
    /// About a minute.
    pub const FULL: Self = Self {
        curve_share: 0.2,
        peak_share: 1.0,
        balancers: 40,
        warmup_ns: 2_000_000_000,
        measured_ns: 3_000_000_000,
    };

    /// For tests.
    pub const SMALL: Self = Self {
        curve_share: 0.02,
        peak_share: 0.02,
        balancers: 4,
        warmup_ns: 300_000_000,
        measured_ns: 200_000_000,
    };

    fn scale(&self, pool: &PoolSettings, share: f64, seed: u64) -> RunScale {
        RunScale {
            replicas: (pool.replicas * share).ceil() as usize,
            balancers: self.balancers,
            warmup_ns: self.warmup_ns,
            measured_ns: self.measured_ns,
            seed,
        }
    }
}

/// Runs all experiments.
pub fn run_experiments(fleet: &FleetSettings, size: &ExperimentSize) -> ExperimentResults {
    let mut results = ExperimentResults::default();
    describe_peak(fleet, size, &mut results);
    let curves: Vec<(BalancingPolicy, Vec<PoolCurve>)> = BalancingPolicy::ALL
        .iter()
        .map(|policy| {
            let curve = |pool: &PoolSettings| {
                let scale = size.scale(pool, size.curve_share, fleet.seed);
                measure_curve(&pool.model, *policy, &scale)
            };
            (*policy, fleet.pools.iter().map(curve).collect())
        })
        .collect();
    describe_load(fleet, &curves, &mut results);
    describe_curves(fleet, &curves, &mut results);
    describe_policies(fleet, &curves, &mut results);
    describe_autoscalers(fleet, &curves, &mut results);
    results
}

/// Every policy at the daily peak, event by event.
fn describe_peak(fleet: &FleetSettings, size: &ExperimentSize, results: &mut ExperimentResults) {
    let utilization = fleet.peak_rps / fleet.capacity();
    let _ = writeln!(
        results.tables,
        "Peak, utilisation {utilization:.2}\n\n\
         | policy | mean | p50 | p99 | p99.9 | errors |\n|---|---|---|---|---|---|"
    );
    for policy in BalancingPolicy::ALL {
        let (mut latency, mut expired) = (LatencyHistogram::default(), 0.0);
        for pool in &fleet.pools {
            let scale = size.scale(pool, size.peak_share, fleet.seed);
            let report = run_cluster(&point_settings(&pool.model, policy, utilization, &scale));
            latency.merge(&report.latency, 1.0);
            expired += report.expired;
        }
        let _ = writeln!(
            results.tables,
            "| {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms | {} |",
            policy.title(),
            latency.mean_ms(),
            latency.quantile_ms(0.5),
            latency.quantile_ms(0.99),
            latency.quantile_ms(0.999),
            percent(expired / (latency.count() + expired))
        );
    }
}

fn power_of_two(curves: &[(BalancingPolicy, Vec<PoolCurve>)]) -> Option<&[PoolCurve]> {
    let is_power_of_two =
        |(policy, _): &&(BalancingPolicy, _)| *policy == BalancingPolicy::PowerOfTwo;
    curves.iter().find(is_power_of_two).map(|(_, pools)| pools.as_slice())
}

/// What the metrics of a server say at each load.
fn describe_load(
    fleet: &FleetSettings,
    curves: &[(BalancingPolicy, Vec<PoolCurve>)],
    results: &mut ExperimentResults,
) {
    let Some(pools) = power_of_two(curves) else { return };
    let _ = writeln!(
        results.tables,
        "\nMetrics by load, power of two\n\n\
         | pool | load | busy | requests that wait | saturation | p99 | errors |\n|---|---|---|---|---|---|---|"
    );
    for (pool, curve) in fleet.pools.iter().zip(pools) {
        for point in &curve.points {
            let _ = writeln!(
                results.tables,
                "| {} | {:.2} | {:.2} | {:.1} | {:.3} | {:.1} ms | {} |",
                pool.model.name,
                point.utilization,
                point.busy,
                point.waiting,
                point.saturation,
                point.p99_ms,
                percent(point.error_share)
            );
        }
    }
}

/// How far each policy can load the servers, and what a million requests then cost.
fn describe_curves(
    fleet: &FleetSettings,
    curves: &[(BalancingPolicy, Vec<PoolCurve>)],
    results: &mut ExperimentResults,
) {
    let _ = writeln!(
        results.tables,
        "\nHighest utilisation with p99 ≤ {P99_MS} ms and ≤ {} errors\n\n\
         | policy | GPU pool | CPU pool | replicas for the peak | cost of a million requests |\n|---|---|---|---|---|",
        percent(ERROR_SHARE)
    );
    for (policy, pools) in curves {
        let highest: Vec<f64> =
            pools.iter().map(|curve| curve.highest(P99_MS, ERROR_SHARE)).collect();
        let (mut capacity, mut price, mut replicas) = (0.0, 0.0, 0.0);
        for (pool, utilization) in fleet.pools.iter().zip(&highest) {
            capacity += pool.replicas * pool.model.capacity() * utilization;
            price += pool.replicas * pool.price_per_hour;
            replicas += pool.replicas;
        }
        let cost = price / 3600.0 / capacity * 1e6;
        let _ = writeln!(
            results.tables,
            "| {} | {:.2} | {:.2} | {:.0} | ${cost:.3} |",
            policy.title(),
            highest[0],
            highest[1],
            replicas * fleet.peak_rps / capacity
        );
    }
    let lines = curves.iter().map(|(policy, pools)| PlotLine {
        title: policy.title().to_owned(),
        points: pools[1].points.iter().map(|point| (point.utilization, point.p99_ms)).collect(),
    });
    let plot = LinePlot {
        title: "p99 of the CPU pool by utilisation and policy",
        x_title: "load over the capacity at nominal speed",
        y_title: "p99, ms",
        x_ticks: (0..=8).map(|tick| f64::from(tick) / 5.0).collect(),
        y_ticks: vec![5.0, 10.0, 20.0, 50.0, 100.0, 200.0],
        is_logarithmic: true,
        lines: lines.collect(),
    };
    results.plots.push(("scale-policies.svg", plot.svg()));
}

const DAY_HEAD: &str = "mean replicas | most | cost of a million requests | p99 | errors | quiet | zone loss | upgrade | flash crowd |\n|---|---|---|---|---|---|---|---|---|---|";

fn day_row(title: &str, day: &DayReport) -> String {
    let parts = day.errors_by_part.iter().map(|errors| percent(errors / day.requests));
    format!(
        "| {title} | {:.0} | {:.0} | ${:.3} | {:.1} ms | {} | {} |",
        day.mean_replicas,
        day.most_replicas,
        day.cost / day.requests * 1e6,
        day.latency.quantile_ms(0.99),
        percent(day.errors / day.requests),
        parts.collect::<Vec<_>>().join(" | ")
    )
}

fn describe_policies(
    fleet: &FleetSettings,
    curves: &[(BalancingPolicy, Vec<PoolCurve>)],
    results: &mut ExperimentResults,
) {
    let _ = writeln!(
        results.tables,
        "\nA day, autoscaling on utilisation and saturation\n\n| policy | {DAY_HEAD}"
    );
    for (policy, pools) in curves {
        let day = run_day(fleet, pools, ScalingMetric::DeviceAndSaturation);
        let _ = writeln!(results.tables, "{}", day_row(policy.title(), &day));
    }
}

fn describe_autoscalers(
    fleet: &FleetSettings,
    curves: &[(BalancingPolicy, Vec<PoolCurve>)],
    results: &mut ExperimentResults,
) {
    let Some(pools) = power_of_two(curves) else { return };
    let days = ScalingMetric::ALL.map(|metric| (metric, run_day(fleet, pools, metric)));
    let _ = writeln!(results.tables, "\nA day, power of two\n\n| autoscaling on | {DAY_HEAD}");
    for (metric, day) in &days {
        let _ = writeln!(results.tables, "{}", day_row(metric.title(), day));
    }
    let requests = days[0].1.requests;
    let _ = writeln!(results.tables, "\n{:.1} billion requests in a day", requests / 1e9);
    let millions = |day: &DayReport, title: &str| PlotLine {
        title: title.to_owned(),
        points: day
            .samples
            .iter()
            .step_by(PLOT_MINUTES)
            .map(|s| (s.hour, s.capacity / 1e6))
            .collect(),
    };
    let mut lines: Vec<PlotLine> =
        days.iter().map(|(metric, day)| millions(day, metric.title())).collect();
    let load = days[0]
        .1
        .samples
        .iter()
        .step_by(PLOT_MINUTES)
        .map(|sample| (sample.hour, sample.load / 1e6));
    lines.push(PlotLine { title: "load".to_owned(), points: load.collect() });
    let hours: Vec<f64> = (0..=8).map(|tick| f64::from(tick * 3)).collect();
    let plot = LinePlot {
        title: "Load and capacity of a day",
        x_title: "hour: zone lost 11 to 12, upgrade from 15, flash crowd at 20.5",
        y_title: "millions of requests a second",
        x_ticks: hours.clone(),
        y_ticks: (0..=6).map(|tick| f64::from(tick) / 2.0).collect(),
        is_logarithmic: false,
        lines,
    };
    results.plots.push(("scale-day.svg", plot.svg()));
    let errors = |day: &DayReport| {
        day.samples
            .iter()
            .step_by(PLOT_MINUTES)
            .map(|s| (s.hour, 100.0 * s.error_share))
            .collect::<Vec<_>>()
    };
    let lines = days
        .iter()
        .map(|(metric, day)| PlotLine { title: metric.title().to_owned(), points: errors(day) });
    let plot = LinePlot {
        title: "Failed requests of a day",
        x_title: "hour",
        y_title: "failed requests, %",
        x_ticks: hours,
        y_ticks: vec![0.001, 0.01, 0.1, 1.0, 10.0, 100.0],
        is_logarithmic: true,
        lines: lines.collect(),
    };
    results.plots.push(("scale-errors.svg", plot.svg()));
}

fn percent(share: f64) -> String {
    match share {
        share if share <= 0.0 => "0".to_owned(),
        share if share < 1e-6 => "< 0.0001 %".to_owned(),
        share if share < 1e-4 => format!("{:.4} %", 100.0 * share),
        share => format!("{:.2} %", 100.0 * share),
    }
}
