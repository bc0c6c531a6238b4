//! The limit of what is logged of one child process, whichever way it takes: its output or its log
//! function. It can neither fill the disk nor hide the lines of others.

use std::fmt;
use std::time::{Duration, Instant};

/// What may be logged a second, and at once after a time of silence.
const LINES_PER_SECOND: u64 = 100;
const BURST_LINES: u64 = 1000;
const BYTES_PER_SECOND: u64 = 128 << 10;
const BURST_BYTES: u64 = 1 << 20;

/// Lines and bytes of one child that may still be logged.
pub struct LogRate {
    lines: u64,
    bytes: u64,
    since: Instant,
    omitted: OmittedLines,
}

/// What was not logged since the last line that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedLines {
    lines: u64,
    bytes: u64,
}

impl LogRate {
    pub fn new(now: Instant) -> Self {
        let omitted = OmittedLines::default();
        Self { lines: BURST_LINES, bytes: BURST_BYTES, since: now, omitted }
    }

    /// `None` if a line of `now` is not to be logged, else what was not since the last one that
    /// was.
    pub fn admit(&mut self, bytes: usize, now: Instant) -> Option<OmittedLines> {
        let seconds = now.saturating_duration_since(self.since).as_secs();
        if seconds > 0 {
            let refill = |left: u64, more: u64, burst: u64| {
                left.saturating_add(seconds.saturating_mul(more)).min(burst)
            };
            self.lines = refill(self.lines, LINES_PER_SECOND, BURST_LINES);
            self.bytes = refill(self.bytes, BYTES_PER_SECOND, BURST_BYTES);
            self.since += Duration::from_secs(seconds);
        }
        let bytes = bytes as u64;
        if self.lines == 0 || self.bytes < bytes {
            self.omitted.lines += 1;
            self.omitted.bytes += bytes;
            return None;
        }
        self.lines -= 1;
        self.bytes -= bytes;
        Some(self.take_omitted())
    }

    /// The line that was just omitted is the first since the last one that was logged.
    pub fn omits_first(&self) -> bool {
        self.omitted.lines == 1
    }

    /// What was not logged since the last line that was.
    pub fn take_omitted(&mut self) -> OmittedLines {
        std::mem::take(&mut self.omitted)
    }
}

impl OmittedLines {
    pub fn is_empty(self) -> bool {
        self.lines == 0
    }
}

impl fmt::Display for OmittedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, bytes } = self;
        write!(
            f,
            "{lines} lines of {bytes} bytes of its output and log were left out: more than {LINES_PER_SECOND} lines or \
             {} KiB a second",
            BYTES_PER_SECOND >> 10
        )
    }
}

#[cfg(test)]
#[path = "log_rate_tests.rs"]
mod tests;
