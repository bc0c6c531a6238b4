//! Unit tests of `advice.rs`.

use super::*;
use crate::counters::VersionTotals;
use trtserver_base::stats::{
    BatchExecution, FailureReason, HistogramBuckets, LatencySettings, VersionStats,
};

/// Requests with these times in microseconds, in batches of `rows` that closed for `reason`.
fn observe(requests: u64, (wait, run): (u64, u64), rows: u32, reason: &str) -> VersionTotals {
    let stats =
        VersionStats::with_buckets(1, HistogramBuckets::default(), &LatencySettings::default());
    let reason = CLOSE_REASONS.iter().position(|name| *name == reason).unwrap();
    for _ in 0..requests {
        stats.batch(0, reason, 1, rows);
        let execution = BatchExecution::new(1, 1, rows, wait * 1000, &Default::default());
        stats.success(rows, 0, 0, (wait + run) * 1000, &execution);
    }
    VersionTotals::read(&stats.snapshot(), None)
}

fn config(text: &str) -> ModelConfig {
    trtserver_proto::text::parse(text).unwrap()
}

#[test]
fn advice_fits_what_was_observed() {
    const DELAY: &str = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 5000 }";
    const DYNAMIC: &str = "max_batch_size: 8 dynamic_batching { }";
    for (text, requests, times, rows, reason, expected) in [
        (DELAY, 100, (5000, 300), 1, "delay", "batches close by delay with 1.0 rows of 8"),
        (DELAY, 100, (5000, 300), 7, "delay", ""),
        // Too few to say anything.
        (DELAY, 5, (5000, 300), 1, "delay", ""),
        (DYNAMIC, 100, (9000, 900), 8, "full", "batches are full (8.0 rows) and requests wait"),
        (DYNAMIC, 100, (90, 900), 8, "full", ""),
        (DYNAMIC, 100, (300, 900), 2, "shape", "100 % of the batches close because"),
        ("max_batch_size: 8", 100, (9000, 900), 1, "alone", "requests are executed one by one"),
        ("max_batch_size: 0", 100, (9000, 900), 1, "alone", "add instances"),
        ("max_batch_size: 0", 100, (900, 9000), 1, "alone", ""),
    ] {
        let (config, recent) = (config(text), observe(requests, times, rows, reason));
        let instances = Some(1);
        let advice = advise(&ObservedModel { config: &config, recent: &recent, instances });
        let all = advice.join(" | ");
        match expected {
            "" => assert_eq!(all, "", "{text} {times:?} {rows} {reason}"),
            part => assert!(all.contains(part), "{text} {times:?} {rows} {reason}: {all}"),
        }
    }
}

#[test]
fn failures_are_told_with_what_to_do() {
    let stats = VersionStats::new(1);
    stats.failure(0, 5, FailureReason::Rejected, false);
    stats.failure(0, 5, FailureReason::Refused, false);
    stats.failure(0, 5, FailureReason::Late, false);
    let recent = VersionTotals::read(&stats.snapshot(), None);
    let config = config("dynamic_batching { default_queue_policy { max_queue_size: 4 } }");
    let advice = advise(&ObservedModel { config: &config, recent: &recent, instances: Some(1) });
    assert_eq!(advice.len(), 3, "{advice:?}");
    assert!(
        advice[0].starts_with("1 requests were rejected: the queue is full at max_queue_size 4")
    );
    assert!(advice[1].starts_with("1 requests were refused on arrival"));
    assert!(advice[2].starts_with("1 requests were refused"));
}
