//! Unit tests of `debt.rs`.

use super::*;

/// Runs a thousand batches of which every `every`th takes `slow_ns`. Returns how many could be run
/// inline, and how many of the slow ones.
fn run_inline(every: usize, slow_ns: u64) -> (usize, usize) {
    let debt = SlowBatchDebt { ns: AtomicU64::new(0) };
    let (mut inline, mut slow_inline) = (0, 0);
    for i in 1..=1000 {
        let slow = i % every == 0;
        inline += usize::from(debt.is_low());
        slow_inline += usize::from(debt.is_low() && slow);
        debt.record(if slow { slow_ns } else { 2_000 });
    }
    (inline, slow_inline)
}

#[test]
fn instances_run_inline_while_batches_are_fast_on_average() {
    for (every, slow_ns, want) in [
        (1, FAST_BATCH_NS, (1000, 1000)),
        (1, 2 * FAST_BATCH_NS, (51, 51)),
        // Preempted by the system for as long as forty fast batches.
        (50, 40 * FAST_BATCH_NS, (1000, 20)),
        (200, 500 * FAST_BATCH_NS, (200, 1)),
        (200, 100 * FAST_BATCH_NS, (800, 5)),
    ] {
        assert_eq!(run_inline(every, slow_ns), want, "every {every} takes {slow_ns} ns");
    }
}

#[test]
fn new_and_very_slow_instances_need_fast_batches_first() {
    let batches_until_low = |debt: SlowBatchDebt| {
        (1..).find(|_| {
            debt.record(0);
            debt.is_low()
        })
    };
    assert_eq!(batches_until_low(SlowBatchDebt::default()), Some(20));
    let debt = SlowBatchDebt::default();
    debt.record(u64::MAX);
    assert_eq!(batches_until_low(debt), Some(9950));
}
