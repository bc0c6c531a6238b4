//! Unit tests of `batches.rs`.

use super::*;
use serde_json::json;

#[test]
fn only_what_came_since_counts() {
    let look = |full: u64, rest: u64| {
        let batch =
            |rows: u64, count: u64| json!({"batch_size": rows, "compute_infer": {"count": count}});
        let statistics = json!({"model_stats": [{
            "batch_stats": [batch(16, full), batch(4, rest)],
            "batch_closed": {"full": full, "delay": rest},
        }]});
        Batches::read(&statistics).unwrap()
    };
    let batches = look(19, 3).since(&look(10, 2));
    assert_eq!((batches.count(), batches.share_from(16), batches.mean()), (10, 0.9, 14.8));
    assert_eq!(batches.reasons(), "full 90.0 %; delay 10.0 %");
}
