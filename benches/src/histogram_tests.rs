//! Unit tests of `histogram.rs`.

use super::*;

#[test]
fn a_bucket_is_never_further_than_two_percent_away() {
    for ns in (0..60).map(|i| 37u64 + (1 << i)) {
        let back = middle(bucket(ns) as u64);
        assert!((back - ns as f64).abs() <= ns as f64 * 0.02 + 0.5, "{ns} became {back}");
    }
}

#[test]
fn quantiles_match_recorded_values() {
    let mut all = Histogram::new();
    (1..=100).for_each(|us| all.record(Duration::from_micros(us)));
    assert!((all.quantile(0.5) - 50.0).abs() < 1.0);
    assert!((all.quantile(0.99) - 99.0).abs() < 2.0);
    assert_eq!(all.count(), 100);
}
