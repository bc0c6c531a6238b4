//! Unit tests of the simulation: known results of queueing theory, the autoscaler's formula, and that
//! equal seeds give equal bytes.

use crate::autoscaler::{MetricReading, PodAutoscaler, ScalingMetric};
use crate::cluster::{ClusterReport, ClusterSettings, run_cluster};
use crate::curves::{CurvePoint, PoolCurve, RunScale, point_settings};
use crate::day::{load_at, run_day};
use crate::experiments::{ExperimentSize, run_experiments};
use crate::fleet::FleetSettings;
use crate::policy::BalancingPolicy;
use crate::replica::ServerModel;

/// One request at a time, exponential with a mean of 1 ms, no deadline.
fn exponential(instances: u32) -> ServerModel {
    ServerModel {
        name: "M",
        instances,
        max_rows: 1,
        delay_ns: 0,
        base_ns: 0.0,
        row_ns: 1e6,
        exponential: true,
        deadline_us: 0,
    }
}

/// One replica for a second.
fn point(model: &ServerModel) -> ClusterSettings<'_> {
    let scale =
        RunScale { replicas: 1, balancers: 1, warmup_ns: 0, measured_ns: 1_000_000_000, seed: 1 };
    point_settings(model, BalancingPolicy::Random, 0.7, &scale)
}

fn run(model: &ServerModel, replicas: usize, policy: BalancingPolicy, slow: f64) -> ClusterReport {
    run_cluster(&ClusterSettings {
        model,
        replicas,
        balancers: 2,
        policy,
        utilization: 0.7,
        slow_share: slow,
        speed_spread: 0.0,
        report_ns: 100_000_000,
        warmup_ns: 2_000_000_000,
        measured_ns: 200_000_000_000 / replicas as u64,
        seed: 7,
    })
}

#[test]
fn one_server_is_an_mm1_queue() {
    let report = run(&exponential(1), 1, BalancingPolicy::RoundRobin, 0.0);
    // 1 / (μ - λ).
    let expected = 1.0 / (1.0 - 0.7);
    let mean = report.latency.mean_ms();
    assert!((mean / expected - 1.0).abs() < 0.06, "{mean} instead of {expected}");
    assert!((report.busy - 0.7).abs() < 0.02, "{}", report.busy);
    // ρ² / (1 - ρ).
    assert!((report.waiting / (0.49 / 0.3) - 1.0).abs() < 0.1, "{}", report.waiting);
    // Exponentially distributed: ln 100 times the mean.
    let p99 = report.latency.quantile_ms(0.99) / (expected * 100f64.ln());
    assert!((p99 - 1.0).abs() < 0.1, "{p99}");
}

#[test]
fn two_instances_are_an_mm2_queue() {
    let report = run(&exponential(2), 1, BalancingPolicy::Random, 0.0);
    // 1 / (μ (1 - ρ²)).
    let expected = 1.0 / (1.0 - 0.49);
    let mean = report.latency.mean_ms();
    assert!((mean / expected - 1.0).abs() < 0.05, "{mean} instead of {expected}");
}

#[test]
fn policies_are_in_their_known_order() {
    let mean = |policy| run(&exponential(1), 20, policy, 0.0).latency.mean_ms();
    let random = mean(BalancingPolicy::Random);
    // Twenty independent M/M/1 queues.
    assert!((random / (1.0 / 0.3) - 1.0).abs() < 0.08, "{random}");
    let round_robin = mean(BalancingPolicy::RoundRobin);
    let power = mean(BalancingPolicy::PowerOfTwo);
    let least = mean(BalancingPolicy::LeastRequest);
    assert!(round_robin < 0.9 * random, "{round_robin} {random}");
    assert!(power < 0.75 * random, "{power} {random}");
    assert!(least < power, "{least} {power}");
}

#[test]
fn weights_spare_slow_servers() {
    let mean = |policy| run(&exponential(1), 20, policy, 0.2).latency.mean_ms();
    // A fifth has half the speed, and more than it can do.
    let (round_robin, orca) = (mean(BalancingPolicy::RoundRobin), mean(BalancingPolicy::OrcaBusy));
    assert!(orca < round_robin / 5.0, "{orca} {round_robin}");
}

#[test]
fn batches_raise_the_capacity_and_requests_expire_beyond_it() {
    let model = ServerModel {
        max_rows: 8,
        base_ns: 7e6,
        row_ns: 1e6,
        exponential: false,
        deadline_us: 50_000,
        ..exponential(1)
    };
    assert!((model.capacity() - 8.0 / 0.015).abs() < 1e-6);
    let overload = |utilization| {
        let mut settings = ClusterSettings {
            model: &model,
            replicas: 4,
            balancers: 1,
            policy: BalancingPolicy::RoundRobin,
            utilization,
            slow_share: 0.0,
            speed_spread: 0.0,
            report_ns: 100_000_000,
            warmup_ns: 1_000_000_000,
            measured_ns: 10_000_000_000,
            seed: 3,
        };
        settings.seed += 1;
        run_cluster(&settings)
    };
    assert_eq!(overload(0.8).expired, 0.0);
    let report = overload(2.0);
    // Half of twice the capacity.
    assert!((report.error_share() - 0.5).abs() < 0.02, "{}", report.error_share());
    assert!(report.latency.quantile_ms(1.0) < 50.0 + 2.0 * 15.0);
}

#[test]
fn autoscaler_follows_the_published_formula() {
    let reading = |mean| [MetricReading { mean, target: 0.5 }];
    // Replicas, reading, result: ceil(replicas × reading / target), tolerance, rates.
    let rows = [
        (10.0, 0.5, 10.0),
        (10.0, 0.54, 10.0),
        (10.0, 0.6, 12.0),
        (10.0, 0.61, 13.0),
        (10.0, 9.0, 20.0),
        (2.0, 9.0, 6.0),
        (100.0, 0.1, 97.0),
        (4.0, 0.1, 3.0),
        (60.0, 0.9, 100.0),
    ];
    for (replicas, mean, expected) in rows {
        let mut autoscaler = PodAutoscaler::new(2.0, 100.0);
        let result = autoscaler.recommend(replicas, replicas, &reading(mean));
        assert_eq!(result, expected, "{replicas} at {mean}");
    }
    // The highest recommendation of 300 s holds.
    let mut autoscaler = PodAutoscaler::new(2.0, 100.0);
    assert_eq!(autoscaler.recommend(50.0, 50.0, &reading(0.5)), 50.0);
    for _ in 0..19 {
        assert_eq!(autoscaler.recommend(50.0, 50.0, &reading(0.1)), 50.0);
    }
    assert_eq!(autoscaler.recommend(50.0, 50.0, &reading(0.1)), 48.0);
}

#[test]
fn load_has_its_peak_and_its_crowd() {
    let hour = |hour: f64| load_at(1e6, hour * 3600.0);
    assert!((hour(16.0) - 1e6).abs() < 1.0 && (hour(4.0) - 2e5).abs() < 1.0);
    assert!(hour(20.6) > 1.7 * hour(20.49));
}

/// A pool that serves all up to its capacity in 10 ms, and is busy in proportion.
fn ideal_curve() -> PoolCurve {
    let points = crate::curves::GRID.map(|utilization| {
        let mut point = CurvePoint { utilization, p99_ms: 10.0, ..CurvePoint::default() };
        point.latency.add(1e7);
        point.busy = utilization.min(1.0);
        point.error_share = (1.0 - 1.0 / utilization).max(0.0);
        point
    });
    PoolCurve { points: points.to_vec() }
}

#[test]
fn fixed_fleet_fails_only_where_its_capacity_is_missing() {
    let fleet = FleetSettings::thousand(1, 1.0, 0.3);
    let curves = [ideal_curve(), ideal_curve()];
    let day = run_day(&fleet, &curves, ScalingMetric::Fixed);
    let [quiet, zone, upgrade, crowd] = day.errors_by_part;
    assert_eq!((quiet, upgrade), (0.0, 0.0));
    // Two seconds in which a third of the requests goes to a lost zone, at least.
    let second = load_at(fleet.peak_rps, 11.0 * 3600.0);
    assert!(zone > 0.6 * second, "{zone}");
    assert!(crowd > 0.0, "{crowd}");
    // 1000 replicas all day, and those that the upgrade starts first.
    let cost = 24.0 * (150.0 + 850.0 * 0.3);
    assert!(day.cost >= cost && day.cost < 1.01 * cost, "{} {cost}", day.cost);
    // The noise of the minutes cancels out.
    let load: f64 = (0..86_400).map(|second| load_at(fleet.peak_rps, f64::from(second))).sum();
    assert!((day.requests / load - 1.0).abs() < 0.003, "{} {load}", day.requests);
}

#[test]
fn autoscaler_saves_replicas_and_survives_the_crowd() {
    let fleet = FleetSettings::thousand(1, 1.0, 0.3);
    let curves = [ideal_curve(), ideal_curve()];
    let fixed = run_day(&fleet, &curves, ScalingMetric::Fixed);
    let scaled = run_day(&fleet, &curves, ScalingMetric::DeviceAndSaturation);
    assert!(scaled.mean_replicas < 0.95 * fixed.mean_replicas, "{}", scaled.mean_replicas);
    assert!(scaled.most_replicas > 1000.0, "{}", scaled.most_replicas);
    assert!(scaled.errors_by_part[3] < fixed.errors_by_part[3]);
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let bytes = |seed| {
        let fleet = FleetSettings::thousand(seed, 1.0, 0.3);
        let results = run_experiments(&fleet, &ExperimentSize::SMALL);
        let plots = results.plots.into_iter().map(|(_, svg)| svg);
        results.tables + &plots.collect::<String>()
    };
    let first = bytes(5);
    assert!(first.matches("<polyline").count() == 6 + 7 + 6, "{first}");
    assert_eq!(first, bytes(5));
    let mean = |seed| {
        let model = exponential(1);
        let settings = ClusterSettings { seed, ..point(&model) };
        run_cluster(&settings).latency.mean_ms()
    };
    assert!(mean(5) != mean(6));
}
