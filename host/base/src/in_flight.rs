//! Requests in flight. Each thread has one of several counters, so that a request writes no cache
//! line that all threads write.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

const COUNTERS: usize = 16;

thread_local! {
    /// The number of this thread, by which it picks a counter.
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Counts requests in flight.
pub struct InFlightRequests {
    counters: [Arc<ThreadCounter>; COUNTERS],
    /// Numbers of threads that were given out.
    threads: AtomicUsize,
}

/// Counts by its references, of which one is not a request's. The alignment gives the reference
/// count a cache line of its own, and the one beside it, which processors fetch together.
#[derive(Default)]
#[repr(align(128))]
struct ThreadCounter;

/// One request in flight.
pub struct InFlightGuard(#[allow(dead_code, reason = "counts until dropped")] Arc<ThreadCounter>);

impl Default for InFlightRequests {
    fn default() -> Self {
        Self { counters: Default::default(), threads: AtomicUsize::new(0) }
    }
}

impl InFlightRequests {
    /// Counts a request until the guard is dropped, by any thread.
    pub fn begin(&self) -> InFlightGuard {
        let number = NUMBER.get().unwrap_or_else(|| {
            let number = self.threads.fetch_add(1, Ordering::Relaxed);
            NUMBER.set(Some(number));
            number
        });
        InFlightGuard(Arc::clone(&self.counters[number % COUNTERS]))
    }

    pub fn count(&self) -> u64 {
        let count = self.counters.iter().map(|counter| Arc::strong_count(counter) as u64 - 1).sum();
        // What the requests did is seen by a thread that finds them ended.
        fence(Ordering::Acquire);
        count
    }
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
