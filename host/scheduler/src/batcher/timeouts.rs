//! Heap of queue timeouts. Entries of requests that left before their timeout are removed lazily.

use super::QueueTicket;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stale entries that are tolerated in any case.
const SLACK: usize = 64;

#[derive(Debug, Default)]
pub struct TimeoutHeap {
    /// (time, order of arrival, request): of two at the same time the older one comes first.
    heap: BinaryHeap<Reverse<(u64, u64, QueueTicket)>>,
    arrivals: u64,
    /// Entries of requests that are still queued.
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

    /// A request with an entry leaves before its timeout. `is_queued`: whether a request is still
    /// queued. Without this the heap would grow with the length of timeouts, even if few requests
    /// are queued.
    pub fn left(&mut self, is_queued: impl Fn(QueueTicket) -> bool) {
        self.live -= 1;
        if self.heap.len() > 2 * self.live + SLACK {
            self.heap.retain(|&Reverse((_, _, ticket))| is_queued(ticket));
            self.heap.shrink_to(2 * self.live + SLACK);
        }
    }

    /// A request whose timeout has passed.
    pub fn pop(
        &mut self,
        now: u64,
        is_queued: impl Fn(QueueTicket) -> bool,
    ) -> Option<QueueTicket> {
        while let Some(&Reverse((when, _, ticket))) = self.heap.peek() {
            let is_queued = is_queued(ticket);
            if is_queued && when > now {
                return None;
            }
            self.heap.pop();
            if is_queued {
                self.live -= 1;
                return Some(ticket);
            }
        }
        None
    }

    /// The earliest timeout, or an earlier one of a request that has left.
    pub fn earliest(&self) -> Option<u64> {
        self.heap.peek().map(|&Reverse((when, ..))| when)
    }
}

#[cfg(test)]
#[path = "timeouts_tests.rs"]
mod tests;
