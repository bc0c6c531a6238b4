//! Unit tests of `arrivals.rs`.

use super::{Arrivals, Distribution, Random};

fn first(arrivals: Arrivals, count: usize) -> Vec<u64> {
    arrivals.take(count).collect()
}

#[test]
fn constant_rate_has_equal_gaps_without_drift() {
    let arrivals = Arrivals::at_rate(3.0, Distribution::Constant, 0);
    assert_eq!(first(arrivals.clone(), 4), [0, 333_333_333, 666_666_666, 1_000_000_000]);
    assert_eq!(arrivals.clone().nth(3_000_000), Some(1_000_000_000_000_000));
}

#[test]
fn intervals_repeat_from_the_start() {
    let arrivals = Arrivals::intervals(&[10, 30]);
    assert_eq!(first(arrivals, 6), [0, 10_000, 40_000, 50_000, 80_000, 90_000]);
}

#[test]
fn poisson_gaps_are_exponential_and_repeatable() {
    let arrivals = Arrivals::at_rate(1000.0, Distribution::Poisson, 7);
    assert_eq!(first(arrivals.clone(), 50), first(arrivals.clone(), 50));
    let times = first(arrivals, 100_001);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Of an exponential distribution the mean and the standard deviation are equal.
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    assert!((variance.sqrt() - 1.0).abs() < 0.03, "{variance}");
}

#[test]
fn threads_share_one_schedule() {
    for arrivals in [
        Arrivals::at_rate(100.0, Distribution::Poisson, 3),
        Arrivals::at_rate(100.0, Distribution::Constant, 3),
        Arrivals::intervals(&[5, 7, 11]),
    ] {
        let whole = first(arrivals.clone(), 9);
        let mut parts: Vec<u64> =
            (0..3).flat_map(|thread| first(arrivals.clone().share(thread, 3), 3)).collect();
        parts.sort_unstable();
        assert_eq!(parts, whole);
    }
}

#[test]
fn random_numbers_stay_below_their_bound() {
    let mut random = Random(1);
    assert!((0..10_000).all(|_| random.below(7) < 7));
}
