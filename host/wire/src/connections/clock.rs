//! Coarse time: milliseconds that are advanced a few times a second. Reading them costs one load.

use std::sync::atomic::{AtomicU64, Ordering};
use trtserver_base::clock::now_ns;

/// The clock of the connections of one listener.
#[derive(Default)]
pub struct CoarseClock(AtomicU64);

impl CoarseClock {
    pub fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Reads the clock for all.
    pub fn advance(&self) -> u64 {
        let now = now_ns() / 1_000_000;
        self.0.fetch_max(now, Ordering::Relaxed).max(now)
    }
}
