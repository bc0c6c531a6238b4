//! Unit tests of `statistics.rs`.

use super::*;
use trtserver_base::stats::{BatchExecution, FailureReason, VersionStats};

#[test]
fn compute_counts_agree() {
    let stats = VersionStats::new(1);
    let execution = BatchExecution::new(0, 2, 3, 100, &Default::default());
    stats.success(1, 50, 60, 200, &execution);
    stats.success(2, 50, 60, 200, &execution);
    stats.failure(0, 9, FailureReason::Other, false);
    stats.warmed_up([("s".into(), DurationSum { count: 2, ns: 9 })].into());
    let got = message("m", 3, &stats.snapshot(), &stats.warmup());
    assert_eq!(got.warmup_stats["s"], StatisticDuration { count: 2, ns: 9 });
    let all = got.inference_stats.unwrap();
    let counts = [all.success, all.queue, all.compute_input, all.compute_infer, all.compute_output]
        .map(|d| d.unwrap().count);
    assert_eq!(counts, [2; 5]);
    assert_eq!(all.fail, Some(StatisticDuration { count: 1, ns: 9 }));
    assert_eq!((got.inference_count, got.execution_count), (3, 1));
    assert_eq!(got.batch_stats.len(), 1);
    assert_eq!(got.batch_stats[0].batch_size, 3);
}
