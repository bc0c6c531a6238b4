//! Unit tests of `sampling.rs`.

use super::*;

const ALL: TraceTarget = TraceTarget { file: None, without_file: true };

fn setting(rate: u32, count: i32) -> Arc<TraceSetting> {
    let levels = TraceLevels { timestamps: true, tensors: false };
    let values = TraceValues { levels, rate, count, log_frequency: 0 };
    Arc::new(TraceSetting::new(OwnValues::default(), values, &ALL))
}

#[test]
fn every_nth_request_is_sampled_until_the_count_is_used_up() {
    for (rate, count, expected, left) in [
        (1, -1, "xxxxxxxx", -1),
        (3, -1, "..x..x..", -1),
        (1, 3, "xxx.....", 0),
        (2, 3, ".x.x.x..", 0),
        (1, 0, "........", 0),
        (9, 1, "........", 1),
    ] {
        let setting = setting(rate, count);
        let sampled: String =
            (0..8).map(|_| if setting.sample(false).is_some() { 'x' } else { '.' }).collect();
        assert_eq!(sampled, expected, "rate {rate} count {count}");
        assert_eq!(setting.values().count, left, "rate {rate} count {count}");
        assert_eq!(setting.is_active(), left != 0);
    }
}

#[test]
fn the_decision_of_a_caller_is_not_counted() {
    let setting = setting(1000, 1);
    for _ in 0..3 {
        assert!(setting.sample(true).is_some());
    }
    assert_eq!(setting.values().count, 1);
}
