//! Whether the requests of a batching model wait for others of the same turn of their network
//! thread before an inline execution.
//!
//! A network thread that executes each request where it reads it never forms a batch, although
//! eight rows may cost little more than one. So the execution may be put off until the thread has
//! read what is ready on its other connections. That detour costs one more poll of the sockets and
//! of the request's task: it is taken where executions take longer, and where it was not in vain.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Executions that take less time gain nothing from a detour of one to two microseconds, and half a
/// microsecond for each request.
const MIN_RUN_NS: u64 = 5_000;
/// So many requests in a row were alone in their batch: there is probably one client.
const MAX_ALONE: u32 = 8;
/// From then on the detour is tried once in so many executions.
const RETRY_AFTER: u32 = 16;
/// A batch counts as one part in so many of the average.
const AVERAGE_OF: u64 = 8;

/// What the executions of one instance have shown. Written by the thread that executes, one at a
/// time.
#[derive(Default)]
pub(super) struct Postponement {
    run_ns: AtomicU64,
    alone: AtomicU32,
}

impl Postponement {
    /// A batch of this many requests was executed in `ns`.
    pub(super) fn record(&self, requests: usize, ns: u64) {
        let run_ns = self.run_ns.load(Ordering::Relaxed);
        self.run_ns.store(run_ns - run_ns / AVERAGE_OF + ns / AVERAGE_OF, Ordering::Relaxed);
        let alone = match (requests, self.alone.load(Ordering::Relaxed)) {
            (0..=1, alone) if alone < MAX_ALONE + RETRY_AFTER => alone + 1,
            (0..=1, _) => MAX_ALONE,
            _ => 0,
        };
        self.alone.store(alone, Ordering::Relaxed);
    }

    /// The next execution waits for the end of the thread's turn.
    pub(super) fn pays(&self) -> bool {
        self.run_ns.load(Ordering::Relaxed) >= MIN_RUN_NS
            && self.alone.load(Ordering::Relaxed) <= MAX_ALONE
    }
}

#[cfg(test)]
#[path = "postponement_tests.rs"]
mod tests;
