//! Coarse time: milliseconds that are advanced a few times a second. Reading them costs one load.

use std::sync::atomic::{AtomicU64, Ordering};
use trtserver_base::clock::now_ns;

static NOW_MS: AtomicU64 = AtomicU64::new(0);

pub fn now_ms() -> u64 {
    NOW_MS.load(Ordering::Relaxed)
}

/// Reads the clock for all.
pub fn advance() -> u64 {
    let now = now_ns() / 1_000_000;
    NOW_MS.fetch_max(now, Ordering::Relaxed).max(now)
}
