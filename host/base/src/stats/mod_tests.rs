//! Unit tests of statistics.

use super::*;

fn buckets() -> HistogramBuckets {
    HistogramBuckets::default()
}

fn succeed(stats: &VersionStats, instance: usize, end_ns: u64) {
    let execution = BatchExecution::new(instance, 1, 1, 100, &Default::default());
    stats.success(1, 50, 60, end_ns, &execution);
}

#[test]
fn batch_of_two_requests_counts_as_one_execution() {
    let stats = VersionStats::new(2);
    let execution = BatchExecution::new(1, 2, 3, 100, &Default::default());
    execution.note_times(110, 150);
    stats.success(1, 50, 60, 200, &execution);
    stats.success(2, 50, 70, 200, &execution);
    stats.failure(0, 5, FailureReason::Other, false);
    let c = stats.snapshot();
    assert_eq!((c.inference_count, c.execution_count), (3, 1));
    assert_eq!(c.executions[&3].compute_infer, DurationSum { count: 1, ns: 40 });
    assert_eq!(c.requests[&1].queue, DurationSum { count: 1, ns: 40 });
    assert_eq!(c.requests[&2].success, DurationSum { count: 1, ns: 150 });
    assert_eq!(c.total().compute, DurationSum { count: 2, ns: 200 });
    assert_eq!(c.total().compute_output, DurationSum { count: 2, ns: 100 });
    assert_eq!(c.total().failed, DurationSum { count: 1, ns: 5 });
    assert_eq!(c.failures, [0, 0, 0, 1, 0]);
    assert_eq!(c.load_ratio.iter().sum::<u64>(), 2);
}

#[test]
fn warmup_is_that_of_the_slowest_instance() {
    let stats = VersionStats::new(3);
    assert!(stats.warmup().is_empty());
    for ns in [20, 30, 10] {
        stats.warmed_up(WarmupSpans::from([("s".into(), DurationSum { count: 2, ns })]));
    }
    let want = WarmupSpans::from([("s".into(), DurationSum { count: 2, ns: 30 })]);
    assert_eq!(stats.warmup(), want);
    assert_eq!(stats.snapshot().execution_count, 0);
}

#[test]
fn counters_continue_with_more_instances() {
    let stats = Arc::new(VersionStats::new(2));
    stats.failure(1, 5, FailureReason::Other, false);
    assert!(Arc::ptr_eq(&stats, &stats.continued(1, buckets())));
    assert!(Arc::ptr_eq(&stats, &stats.continued(2, buckets())));
    let more = stats.continued(3, buckets());
    more.failure(1, 7, FailureReason::Other, false);
    // A request of the instances before.
    stats.failure(1, 9, FailureReason::Other, false);
    assert_eq!(more.snapshot().total().failed, DurationSum { count: 3, ns: 21 });
}

#[test]
fn counters_are_apart_by_gpu_and_together_in_the_snapshot() {
    let stats = Arc::new(VersionStats::new(2));
    stats.placed(1, Some("GPU-1".to_owned()));
    let success = |stats: &VersionStats, instance: usize| succeed(stats, instance, 200);
    success(&stats, 0);
    success(&stats, 1);
    stats.failure(1, 5, FailureReason::Other, false);
    // With more instances, of which one has moved.
    let more = stats.continued(4, buckets());
    more.placed(3, Some("GPU-2".to_owned()));
    more.placed(0, Some("GPU-1".to_owned()));
    success(&more, 3);
    success(&more, 0);
    success(&more, 2);
    let counts: Vec<_> = more
        .by_gpu()
        .into_iter()
        .map(|(gpu, c)| (gpu, c.inference_count, c.total().failed.count))
        .collect();
    let on = |gpu: &str| Some(Arc::from(gpu));
    assert_eq!(counts, [(None, 2, 1), (on("GPU-1"), 2, 0), (on("GPU-2"), 1, 0)]);
    assert_eq!(more.snapshot().inference_count, 5);
}

#[test]
fn reported_times_out_of_order_are_ignored() {
    let execution = BatchExecution::new(0, 1, 1, 100, &Default::default());
    execution.note_times(5, 900);
    assert_eq!(execution.phases(200), [0, 100, 0]);
}

#[test]
fn histograms_continue_unless_their_buckets_change() {
    let stats = Arc::new(VersionStats::new(1));
    succeed(&stats, 0, 1_000_000);
    let counts = |stats: &VersionStats| -> Vec<u64> {
        let latencies = stats.snapshot().latencies.unwrap();
        latencies.histograms().iter().map(DurationHistogram::count).collect()
    };
    let more = stats.continued(2, buckets());
    succeed(&more, 1, 1_000_000);
    assert_eq!(counts(&more), [2, 2, 2, 2]);
    let other =
        HistogramBuckets::new(|family| (family == HISTOGRAMS[0].family).then_some(&[1.0, 2.0][..]));
    let changed = more.continued(1, other);
    succeed(&changed, 0, 1_000_000);
    assert_eq!(counts(&changed), [1, 3, 3, 3]);
    // A decoupled version counts first responses when they come.
    changed.set_decoupled(true);
    succeed(&changed, 0, 1_000_000);
    assert_eq!(counts(&changed), [2, 4, 4, 3]);
    changed.first_response(0, 5);
    assert_eq!(counts(&changed), [2, 4, 4, 4]);
    assert_eq!(changed.snapshot().inference_count, 4);
}

#[test]
fn executing_requests_are_those_started_and_not_ended() {
    let stats = VersionStats::new(1);
    stats.batch(0, 0, 3, 5);
    assert_eq!(stats.snapshot().executing(), 3);
    succeed(&stats, 0, 200);
    stats.failure(1, 5, FailureReason::Backend, true);
    stats.failure(1, 5, FailureReason::Rejected, false);
    let counters = stats.snapshot();
    assert_eq!((counters.executing(), counters.refused.count), (1, 0));
    stats.failure(0, 5, FailureReason::Refused, false);
    let counters = stats.snapshot();
    assert_eq!((counters.refused.count, counters.failures), (1, [1, 0, 1, 0, 0]));
}

#[test]
fn late_responses_of_a_stream_are_counted_together() {
    let stats = VersionStats::new(1);
    for index in [0, MAX_RESPONSE_INDEX, MAX_RESPONSE_INDEX + 1, u32::MAX] {
        stats.response(0, index, 5, ResponseOutcome::Success);
    }
    stats.response_delivered(0, u32::MAX, 2);
    stats.response(0, 1, 7, ResponseOutcome::Empty);
    let responses = stats.snapshot().responses;
    let last = &responses[&MAX_RESPONSE_INDEX];
    assert_eq!(last.success, DurationSum { count: 3, ns: 17 });
    assert_eq!(last.compute_output, DurationSum { count: 3, ns: 2 });
    assert_eq!(responses[&1].empty, DurationSum { count: 1, ns: 7 });
    assert_eq!(responses[&1].compute_infer, DurationSum::default());
}
