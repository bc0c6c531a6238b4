//! Unit tests of `batches.rs`.

use super::*;
use serde_json::json;

#[test]
fn since_subtracts_earlier_batches() {
    let read = |full: u64, rest: u64| {
        let batch =
            |rows: u64, count: u64| json!({"batch_size": rows, "compute_infer": {"count": count}});
        let statistics = json!({"model_stats": [{
            "batch_stats": [batch(16, full), batch(4, rest)],
            "batch_closed": {"full": full, "delay": rest},
        }]});
        Batches::read(&statistics).unwrap()
    };
    let batches = read(19, 3).since(&read(10, 2));
    assert_eq!((batches.count(), batches.share_from(16), batches.mean()), (10, 0.9, 14.8));
    assert_eq!(batches.reasons(), "full 90.0 %; delay 10.0 %");
}
