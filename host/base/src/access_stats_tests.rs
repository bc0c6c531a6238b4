//! Unit tests of `access_stats.rs`.

use super::*;

#[test]
fn callers_without_a_name_have_few_lines_a_second() {
    let stats = AccessStats::default();
    let taken = |ns| (0..100).filter(|_| stats.take_unnamed_line(ns)).count();
    assert_eq!([5, 5, 6, 60].map(|second| taken(second * SECOND)), [10, 0, 10, 10]);
    assert_eq!(taken(61 * SECOND - 1), 0);
}
