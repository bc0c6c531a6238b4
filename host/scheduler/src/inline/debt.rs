//! Slow-batch debt: which instances are fast enough for inline execution.
//!
//! Execution time beyond [`FAST_BATCH_NS`] a batch adds to the debt, each batch pays off that much.
//! Above [`DEBT_LIMIT_NS`] the instance is run by its own thread only.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a batch may take on average. Longer ones gain little from saving two context switches of 5
/// to 30 µs, and keep a network thread from its connections.
pub(super) const FAST_BATCH_NS: u64 = 100_000;
/// Not a single slow batch but several: a thread that the system preempts gives no information
/// about its model.
pub(super) const DEBT_LIMIT_NS: u64 = 50 * FAST_BATCH_NS;
/// The slowest batch is paid off by ten thousand fast ones.
const MAX_DEBT_NS: u64 = 10_000 * FAST_BATCH_NS;

/// Slow-batch debt of one instance in nanoseconds.
pub(super) struct SlowBatchDebt {
    ns: AtomicU64,
}

impl Default for SlowBatchDebt {
    /// The first twenty batches are executed by the instance's own thread.
    fn default() -> Self {
        Self { ns: AtomicU64::new(DEBT_LIMIT_NS + 20 * FAST_BATCH_NS) }
    }
}

impl SlowBatchDebt {
    /// Adds a batch that took `ns`. Called by the thread that executes, one at a time.
    pub(super) fn record(&self, ns: u64) {
        let debt = self.ns.load(Ordering::Relaxed).saturating_add(ns);
        self.ns.store(debt.saturating_sub(FAST_BATCH_NS).min(MAX_DEBT_NS), Ordering::Relaxed);
    }

    pub(super) fn is_low(&self) -> bool {
        self.ns.load(Ordering::Relaxed) <= DEBT_LIMIT_NS
    }
}

#[cfg(test)]
#[path = "debt_tests.rs"]
mod tests;
