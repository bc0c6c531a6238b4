//! Unit tests of `statistics.rs`.

use super::ServerStats;
use std::collections::{BTreeMap, HashMap};
use trtserver_proto::{v1, v2};

fn stats(requests: u64, total_ns: u64) -> ServerStats {
    let (model, version) = ("m".to_owned(), "1".to_owned());
    ServerStats { model, version, requests, total_ns, ..ServerStats::default() }
}

#[test]
fn growth_is_the_difference_of_counters() {
    let mut before = stats(10, 1000);
    before.batches = BTreeMap::from([(1, 5), (4, 2)]);
    before.composing = vec![stats(1, 10)];
    let mut after = stats(30, 5000);
    after.batches = BTreeMap::from([(1, 5), (4, 9), (8, 1)]);
    after.composing = vec![stats(4, 70)];
    let growth = after.since(&before);
    assert_eq!((growth.requests, growth.average(growth.total_ns)), (20, 200));
    assert_eq!(growth.batches, BTreeMap::from([(4, 7), (8, 1)]));
    assert_eq!(growth.composing, [stats(3, 60)]);
    let mut sum = growth.clone();
    sum.add(&growth);
    assert_eq!((sum.requests, sum.batches[&4], sum.composing[0].requests), (40, 14, 6));
}

#[test]
fn steps_are_told_apart_by_model_and_version() {
    let step = |version: &str, requests| ServerStats {
        version: version.to_owned(),
        ..stats(requests, 10)
    };
    let both = |one, two| {
        let composing = vec![step("1", one), step("2", two)];
        ServerStats { composing, ..stats(9, 90) }
    };
    let mut growth = both(5, 50).since(&both(2, 20));
    assert_eq!(growth.composing.iter().map(|s| s.requests).collect::<Vec<_>>(), [3, 30]);
    growth.add(&both(1, 10));
    assert_eq!(growth.composing.iter().map(|s| s.requests).collect::<Vec<_>>(), [4, 40]);
}

#[test]
fn counters_of_a_reloaded_model_count_from_zero() {
    assert_eq!(stats(3, 50).since(&stats(10, 1000)), stats(3, 50));
    let mut other = stats(30, 5000);
    other.version = "2".to_owned();
    assert_eq!(other.since(&stats(10, 1000)).requests, 30);
    assert_eq!(stats(0, 0).average(7), 0);
}

#[test]
fn v1_status_of_the_highest_version_is_read() {
    let time = |count, total_time_ns| Some(v1::StatDuration { count, total_time_ns });
    let counters = |count| v1::InferRequestStats {
        success: time(count, 100),
        queue: time(count, 20),
        compute: time(count, 30),
        ..Default::default()
    };
    let version = |count| v1::ModelVersionStatus {
        infer_stats: HashMap::from([(4, counters(count))]).into_iter().collect(),
        model_execution_count: 2,
        ..Default::default()
    };
    let model = v1::ModelStatus {
        version_status: HashMap::from([(1, version(5)), (3, version(7)), (-1, version(9))])
            .into_iter()
            .collect(),
        ..Default::default()
    };
    let status = v1::ServerStatus {
        model_status: HashMap::from([("m".to_owned(), model)]).into_iter().collect(),
        ..Default::default()
    };
    let read = |version, batch| ServerStats::from_v1("m", version, batch, &status);
    let latest = read(-1, 4).unwrap();
    assert_eq!((latest.version.as_str(), latest.requests), ("3", 7));
    assert_eq!((latest.queue_ns, latest.compute_ns, latest.total_ns), (20, 30, 100));
    assert_eq!(read(1, 4).unwrap().requests, 5);
    assert_eq!(read(1, 2).unwrap().requests, 0);
    assert_eq!(
        read(2, 4).unwrap_err(),
        "missing model version status: model 'm' has no version 2, only: -1, 1, 3"
    );
    // Executions count whatever the batch size of the requests.
    assert_eq!((read(1, 4).unwrap().executions, read(1, 2).unwrap().executions), (2, 2));
    assert!(ServerStats::from_v1("x", -1, 4, &status).unwrap_err().contains("model x"));
}

#[test]
fn v2_statistics_of_the_highest_version_are_read() {
    let version = |version: &str, count| v2::ModelStatistics {
        name: "m".to_owned(),
        version: version.to_owned(),
        execution_count: count,
        inference_stats: Some(v2::InferStatistics {
            success: Some(v2::StatisticDuration { count, ns: 9 }),
            ..Default::default()
        }),
        batch_stats: vec![v2::InferBatchStatistics {
            batch_size: 2,
            compute_infer: Some(v2::StatisticDuration { count, ns: 5 }),
            ..Default::default()
        }],
        ..Default::default()
    };
    let all = v2::ModelStatisticsResponse { model_stats: vec![version("10", 4), version("9", 3)] };
    let latest = ServerStats::from_v2("m", "", &all).unwrap();
    assert_eq!((latest.version.as_str(), latest.requests, latest.batches[&2]), ("10", 4, 4));
    assert_eq!(ServerStats::from_v2("m", "9", &all).unwrap().executions, 3);
    assert!(ServerStats::from_v2("m", "8", &all).is_err());
}
