//! Who has waited too long: a heap of timeouts, in which requests that left earlier stay for a while.

use super::QueueTicket;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries that are kept without asking whether anybody still waits for them.
const SLACK: usize = 64;

#[derive(Debug, Default)]
pub struct TimeoutHeap {
    /// (when, order of arrival, who): of two that end together the older one comes first.
    heap: BinaryHeap<Reverse<(u64, u64, QueueTicket)>>,
    arrivals: u64,
    /// Entries of requests that still wait for theirs.
    live: usize,
}

impl TimeoutHeap {
    /// True when it is the earliest.
    pub fn push(&mut self, when: u64, ticket: QueueTicket) -> bool {
        let earliest = self.earliest().is_none_or(|earliest| when < earliest);
        self.arrivals += 1;
        self.live += 1;
        self.heap.push(Reverse((when, self.arrivals, ticket)));
        earliest
    }

    /// One that was pushed leaves before its time. `waits` tells who is left; without this the heap would grow for as
    /// long as timeouts last, whatever waits.
    pub fn left(&mut self, waits: impl Fn(QueueTicket) -> bool) {
        self.live -= 1;
        if self.heap.len() > 2 * self.live + SLACK {
            self.heap.retain(|&Reverse((_, _, ticket))| waits(ticket));
            self.heap.shrink_to(2 * self.live + SLACK);
        }
    }

    /// One whose time has come; it may have left.
    pub fn pop(&mut self, now: u64, waits: impl Fn(QueueTicket) -> bool) -> Option<QueueTicket> {
        while let Some(&Reverse((when, _, ticket))) = self.heap.peek() {
            let waits = waits(ticket);
            if waits && when > now {
                return None;
            }
            self.heap.pop();
            if waits {
                self.live -= 1;
                return Some(ticket);
            }
        }
        None
    }

    /// Never after the earliest of those who wait; before it when one has left.
    pub fn earliest(&self) -> Option<u64> {
        self.heap.peek().map(|&Reverse((when, ..))| when)
    }
}

#[cfg(test)]
#[path = "timeouts_tests.rs"]
mod tests;
