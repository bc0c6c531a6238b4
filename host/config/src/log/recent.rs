//! The last lines of the log, in memory: those of `GET /v2/trtserver/log`.

use super::line::{LogLine, cut_text};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::UNIX_EPOCH;
use tracing::Level;

/// Lines, and bytes of their texts, that are kept.
const MAX_LINES: usize = 1000;
const MAX_BYTES: usize = 256 << 10;
/// Longer texts are cut.
const MAX_TEXT: usize = 2 << 10;

/// How important a line is; the first is the most important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineLevel {
    Error,
    Warning,
    Info,
    Verbose,
}

impl LineLevel {
    pub const ALL: [Self; 4] = [Self::Error, Self::Warning, Self::Info, Self::Verbose];

    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Verbose => "verbose",
        }
    }

    fn from_event(level: Level) -> Self {
        match level {
            Level::ERROR => Self::Error,
            Level::WARN => Self::Warning,
            Level::INFO => Self::Info,
            _ => Self::Verbose,
        }
    }
}

/// A line of the log, without its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentLine {
    /// Counts all lines since the start, from 1.
    pub number: u64,
    pub unix_ms: u64,
    pub level: LineLevel,
    /// Source file and line.
    pub place: String,
    pub text: String,
}

/// The last lines, in a ring of limited size.
#[derive(Default)]
pub struct RecentLines(Mutex<LineRing>);

#[derive(Default)]
struct LineRing {
    lines: VecDeque<RecentLine>,
    bytes: usize,
    /// Of the last line.
    number: u64,
    /// No line is kept.
    disabled: bool,
}

impl RecentLines {
    pub(super) fn add(&self, record: &LogLine) {
        let since = record.now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let mut ring = self.0.lock();
        if ring.disabled {
            return;
        }
        let text = cut_text(record.text(), MAX_TEXT);
        let place = format!("{}:{}", record.file, record.line);
        ring.number += 1;
        ring.bytes += text.len() + place.len();
        let (number, level) = (ring.number, LineLevel::from_event(record.level));
        ring.lines.push_back(RecentLine { number, unix_ms, level, place, text });
        while ring.lines.len() > MAX_LINES || ring.bytes > MAX_BYTES {
            let Some(oldest) = ring.lines.pop_front() else { break };
            ring.bytes -= oldest.text.len() + oldest.place.len();
        }
    }

    /// Keeps no line from now on, and forgets those of before.
    pub fn disable(&self) {
        *self.0.lock() = LineRing { disabled: true, ..LineRing::default() };
    }

    /// False after [`RecentLines::disable`].
    pub fn is_enabled(&self) -> bool {
        !self.0.lock().disabled
    }

    /// The lines after the one with this number that are at least as important as `level`, the
    /// oldest first; and the number of the last line of all.
    pub fn after(&self, number: u64, level: LineLevel) -> (Vec<RecentLine>, u64) {
        let ring = self.0.lock();
        let is_new = |line: &&RecentLine| line.number > number && line.level <= level;
        (ring.lines.iter().filter(is_new).cloned().collect(), ring.number)
    }
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
