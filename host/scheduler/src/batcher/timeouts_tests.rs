//! Unit tests of `timeouts.rs`.

use super::*;
use std::collections::BTreeSet;

#[test]
fn stale_entries_are_removed() {
    let mut timeouts = TimeoutHeap::default();
    let mut waiting = BTreeSet::new();
    for i in 0..100_000 {
        timeouts.push(1_000_000 + i, QueueTicket(i));
        waiting.insert(QueueTicket(i));
        if i >= 100 {
            waiting.remove(&QueueTicket(i - 100));
            timeouts.left(|ticket| waiting.contains(&ticket));
        }
        assert!(timeouts.heap.len() <= 2 * 100 + SLACK + 1);
    }
    let mut left: Vec<QueueTicket> = Vec::new();
    while let Some(ticket) = timeouts.pop(u64::MAX, |ticket| waiting.contains(&ticket)) {
        left.push(ticket);
    }
    assert_eq!(left, waiting.into_iter().collect::<Vec<_>>());
    assert_eq!((timeouts.live, timeouts.earliest()), (0, None));
}
