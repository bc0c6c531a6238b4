//! Unit tests of `rows.rs`.

use super::*;

#[test]
fn threads_are_used_for_work_that_is_worth_them() {
    for (rows, row_ns, available, expected) in [
        (1, 1e3, 8, 1),
        (100, 1e3, 8, 1),
        (1_000, 1e3, 8, 2),
        (100_000, 1e3, 8, 8),
        (100_000, 1e3, 1, 1),
        (2, 1e9, 8, 2),
        (0, 1e3, 8, 1),
        (1_000, f64::NAN, 8, 1),
    ] {
        assert_eq!(count_threads(rows, row_ns, available), expected, "{rows} {row_ns}");
    }
}

#[test]
fn rows_are_divided_without_rest() {
    for (count, others) in [(10, 0), (10, 2), (3, 3), (1, 1), (0, 2)] {
        let (own, parts) = divide_rows(count, others);
        let parts: Vec<usize> = parts.collect();
        assert_eq!((parts.len(), own + parts.iter().sum::<usize>()), (others, count));
    }
}
