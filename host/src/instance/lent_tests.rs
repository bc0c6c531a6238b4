//! Unit tests of `lent.rs`.

use super::*;

/// Of a thousand short batches with a longer one now and then: how many find the instance lent, and how many of the
/// longer ones.
fn lent(every: usize, long: u64) -> (usize, usize) {
    let pace = Pace { debt_ns: AtomicU64::new(0) };
    let (mut lent, mut longer) = (0, 0);
    for i in 1..=1000 {
        let is_long = i % every == 0;
        lent += usize::from(pace.is_quick());
        longer += usize::from(pace.is_quick() && is_long);
        pace.note(if is_long { long } else { 2_000 });
    }
    (lent, longer)
}

#[test]
fn models_are_lent_as_long_as_they_are_quick_on_average() {
    for (every, long, want) in [
        (1, QUICK_NS, (1000, 1000)),
        (1, 2 * QUICK_NS, (51, 51)),
        // The system's interruptions, as long as forty batches may take.
        (50, 40 * QUICK_NS, (1000, 20)),
        (200, 500 * QUICK_NS, (200, 1)),
        (200, 100 * QUICK_NS, (800, 5)),
    ] {
        assert_eq!(lent(every, long), want, "every {every} takes {long} ns");
    }
}

#[test]
fn new_instances_and_very_slow_ones_are_not_lent_for_a_while() {
    let until_lent = |pace: Pace| {
        (1..).find(|_| {
            pace.note(0);
            pace.is_quick()
        })
    };
    assert_eq!(until_lent(Pace::default()), Some(20));
    let pace = Pace::default();
    pace.note(u64::MAX);
    assert_eq!(until_lent(pace), Some(9950));
}
