//! The server's clock: CLOCK_MONOTONIC, which backends use, too.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Milliseconds since the Unix epoch of a time of [`now_ns`] that has passed.
pub fn unix_ms(ns: u64) -> u64 {
    let passed = Duration::from_nanos(now_ns().saturating_sub(ns));
    let then = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    then.saturating_sub(passed).as_millis() as u64
}
