//! Unit tests of `quantiles.rs`.

use super::*;

fn recent(durations: impl IntoIterator<Item = (u64, u64)>) -> RecentDurations {
    let mut recent = RecentDurations::default();
    durations.into_iter().for_each(|(at, ns)| recent.add(at, ns));
    recent
}

#[test]
fn quantiles_are_exact_to_their_error() {
    let recent = recent((1..=1000).map(|n| (5, n * 1000)));
    for (quantile, value) in
        [0.5, 0.9, 0.99, 1.0].iter().zip(recent.quantiles(5, &[0.5, 0.9, 0.99, 1.0]))
    {
        let expected = quantile * 1e6;
        assert!((value - expected).abs() <= expected * 0.016, "{quantile}: {value}");
    }
}

#[test]
fn durations_of_all_lengths_are_counted() {
    for ns in [0, 1, 31, 32, 1 << 40] {
        let [value] = recent([(0, ns)]).quantiles(0, &[0.5])[..] else { panic!("one value") };
        assert!((value - ns as f64).abs() <= ns as f64 * 0.016, "{ns}: {value}");
    }
    assert!(recent([(0, u64::MAX)]).quantiles(0, &[0.5])[0] > 1e13);
}

#[test]
fn durations_are_dropped_after_a_minute() {
    let mut both = recent([(0, 10), (4 * SLICE_NS, 20)]);
    assert_eq!(both.quantiles(4 * SLICE_NS, &[0.5, 1.0]), [10.0, 20.0]);
    assert_eq!(both.quantiles(5 * SLICE_NS, &[0.5]), [20.0]);
    assert!(both.quantiles(9 * SLICE_NS, &[0.5])[0].is_nan());
    // The slice of the first one is used again.
    both.add(5 * SLICE_NS, 30);
    assert_eq!(both.quantiles(5 * SLICE_NS, &[0.5, 1.0]), [20.0, 30.0]);
}

#[test]
fn merged_durations_are_those_of_the_same_time() {
    let mut ours = recent([(0, 10), (SLICE_NS, 11)]);
    ours.merge(&recent([(SLICE_NS, 12), (5 * SLICE_NS, 13)]));
    assert_eq!(ours.quantiles(5 * SLICE_NS, &[0.3, 0.6, 1.0]), [11.0, 12.0, 13.0]);
}
