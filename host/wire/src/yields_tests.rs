//! When yields are due, and how much time they may lose.

use super::{LONG_NS, LOST_SHARE, MAX_CREDIT_NS, POLLS, Yields};

#[test]
fn a_yield_is_due_after_a_number_of_polls() {
    let mut yields = Yields::new();
    for _ in 0..3 {
        let due: Vec<bool> = (0..POLLS).map(|_| yields.count()).collect();
        assert_eq!(due.iter().filter(|due| **due).count(), 1);
        assert_eq!(due.last(), Some(&true));
    }
}

#[test]
fn short_yields_cost_no_credit() {
    let mut yields = Yields::new();
    for now in 0..1000 {
        assert!(yields.is_due(now));
        yields.took(LONG_NS);
    }
}

#[test]
fn long_yields_take_one_part_of_the_time() {
    let mut yields = Yields::new();
    let (slice, busy) = (4 * LONG_NS, 150_000);
    let (mut now, mut lost) = (0, 0);
    while now < 10_000_000_000 {
        now += busy;
        if yields.is_due(now) {
            yields.took(slice);
            now += slice;
            lost += slice;
        }
    }
    let allowed = now / LOST_SHARE + MAX_CREDIT_NS.unsigned_abs();
    assert!(lost <= allowed + slice, "{lost} of {now} ns");
    assert!(lost > allowed / 2, "{lost} of {now} ns");
}
