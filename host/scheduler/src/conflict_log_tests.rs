//! Unit tests of `conflict_log.rs`.

use super::*;

#[test]
fn logs_one_conflict_a_second_and_counts_the_others() {
    let mut conflicts = ConflictLog::default();
    let times = [5, 6, 900_000_000, 1_000_000_006, 1_000_000_007, 3_000_000_000];
    let admitted = times.map(|now| conflicts.admit(now));
    assert_eq!(admitted, [Some(0), None, None, Some(2), None, Some(1)]);
}
