//! Unit tests of `conflict_log.rs`.

use super::*;

#[test]
fn conflicts_are_told_once_a_second() {
    let mut conflicts = ConflictLog::default();
    let times = [5, 6, 900_000_000, 1_000_000_006, 1_000_000_007, 3_000_000_000];
    let told = times.map(|now| conflicts.tell(now));
    assert_eq!(told, [Some(0), None, None, Some(2), None, Some(1)]);
}
