//! Unit tests of statistics.

use super::*;

#[test]
fn batch_of_two_requests_counts_as_one_execution() {
    let stats = VersionStats::new(2);
    let execution = Execution::new(1, 2, 3, 100, &Default::default());
    execution.note_times(110, 150);
    stats.success(1, 50, 60, 200, &execution);
    stats.success(2, 50, 70, 200, &execution);
    stats.failure(0, 5, FailureReason::Other);
    let c = stats.snapshot();
    assert_eq!((c.inference_count, c.execution_count), (3, 1));
    assert_eq!(c.executions[&3].compute_infer, Span { count: 1, ns: 40 });
    assert_eq!(c.requests[&1].queue, Span { count: 1, ns: 40 });
    assert_eq!(c.requests[&2].success, Span { count: 1, ns: 150 });
    assert_eq!(c.total().compute, Span { count: 2, ns: 200 });
    assert_eq!(c.total().compute_output, Span { count: 2, ns: 100 });
    assert_eq!(c.total().failed, Span { count: 1, ns: 5 });
    assert_eq!(c.failures, [0, 0, 0, 1]);
    assert_eq!(c.load_ratio.iter().sum::<u64>(), 2);
}

#[test]
fn warmup_is_that_of_the_slowest_instance() {
    let stats = VersionStats::new(3);
    assert!(stats.warmup().is_empty());
    for ns in [20, 30, 10] {
        stats.warmed_up(WarmupSpans::from([("s".into(), Span { count: 2, ns })]));
    }
    let want = WarmupSpans::from([("s".into(), Span { count: 2, ns: 30 })]);
    assert_eq!(stats.warmup(), want);
    assert_eq!(stats.snapshot().execution_count, 0);
}

#[test]
fn counters_continue_with_more_instances() {
    let stats = Arc::new(VersionStats::new(2));
    stats.failure(1, 5, FailureReason::Other);
    assert!(Arc::ptr_eq(&stats, &stats.continued(1)));
    assert!(Arc::ptr_eq(&stats, &stats.continued(2)));
    let more = stats.continued(3);
    more.failure(1, 7, FailureReason::Other);
    // A request of the instances before.
    stats.failure(1, 9, FailureReason::Other);
    assert_eq!(more.snapshot().total().failed, Span { count: 3, ns: 21 });
}

#[test]
fn counters_are_apart_by_gpu_and_together_in_the_snapshot() {
    let stats = Arc::new(VersionStats::new(2));
    stats.placed(1, Some("GPU-1".to_owned()));
    let success = |stats: &VersionStats, instance: usize| {
        let execution = Execution::new(instance, 1, 1, 100, &Default::default());
        stats.success(1, 50, 60, 200, &execution);
    };
    success(&stats, 0);
    success(&stats, 1);
    stats.failure(1, 5, FailureReason::Other);
    // With more instances, of which one has moved.
    let more = stats.continued(4);
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
    let execution = Execution::new(0, 1, 1, 100, &Default::default());
    execution.note_times(5, 900);
    assert_eq!(execution.phases(200), [0, 100, 0]);
}
