//! Nanoseconds since the engine started.

use std::time::Instant;

#[derive(Clone, Copy, Debug)]
pub struct EngineClock(Instant);

impl EngineClock {
    pub fn start() -> Self {
        EngineClock(Instant::now())
    }

    pub fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A difference of two times, capped to what a record holds (4.3 seconds).
pub fn short_duration(from: u64, to: u64) -> u32 {
    u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX)
}
