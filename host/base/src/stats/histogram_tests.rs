//! Unit tests of `histogram.rs`.

use super::*;

#[test]
fn bucket_is_the_first_with_a_bound_not_below() {
    let bounds = [0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 8.0, 9.0, 1000.0, 1001.0, 1e6, 1e18];
    let buckets = BucketBounds::new(&bounds, 1.0);
    let near =
        bounds.iter().flat_map(|b| (0..4u64).map(move |d| (*b as u64 + d).saturating_sub(2)));
    let powers = (0..64).map(|power| 1u64 << power);
    for ns in near.chain(powers).chain([u64::MAX]) {
        let expected = buckets.bounds.iter().position(|bound| ns <= *bound).unwrap();
        assert_eq!(buckets.index(ns), expected, "{ns}");
    }
}

#[test]
fn bounds_have_the_unit_of_the_metric() {
    let mut histogram = DurationHistogram::new(&Arc::new(BucketBounds::new(&[0.5, 2.0], 1e6)));
    [500_000, 500_001, 2_000_000, 2_000_001].into_iter().for_each(|ns| histogram.add(ns));
    assert_eq!(histogram.counts(), [1, 2, 1]);
    assert_eq!((histogram.count(), histogram.sum_ns()), (4, 5_000_002));
    assert_eq!(histogram.bounds(), [0.5, 2.0]);
}

#[test]
fn counts_of_other_bounds_are_replaced() {
    let buckets = |bound: f64| Arc::new(BucketBounds::new(&[bound], 1.0));
    let mut old = DurationHistogram::new(&buckets(1.0));
    old.add(1);
    let mut same = DurationHistogram::new(&buckets(1.0));
    same.add(2);
    old.merge(&same);
    assert_eq!(old.counts(), [1, 1]);
    let mut new = DurationHistogram::new(&buckets(5.0));
    new.add(2);
    old.merge(&new);
    assert_eq!((old.counts(), old.bounds()), (&[1, 0][..], &[5.0][..]));
}
