//! The server's clock: CLOCK_MONOTONIC, which backends use, too.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Milliseconds since the Unix epoch.
pub fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}
