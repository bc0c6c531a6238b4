//! What is counted of the access check: the check writes it, the metrics page reads it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a server with `--auth-file` or `--control-address`.
#[derive(Debug, Default)]
pub struct AccessStats {
    reloads: [AtomicU64; AuthReloadOutcome::ALL.len()],
    refusals: [AtomicU64; AccessRefusalReason::ALL.len()],
    /// The second of the last log lines of callers without a name, and their number.
    unnamed_second: AtomicU64,
    unnamed_lines: AtomicU64,
}

/// Refused callers without a name have so many log lines a second: they cost their senders nothing.
const MAX_UNNAMED: u64 = 10;
const SECOND: u64 = 1_000_000_000;

/// How a look at a changed auth file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthReloadOutcome {
    /// Requests are checked by the new file.
    Success,
    /// The file cannot be used; what was read before stays in use.
    Failure,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRefusalReason {
    /// It has neither a token nor a certificate that the file knows, and anonymous callers may not.
    NoToken,
    /// Its token is not in the file.
    UnknownToken,
    /// Its name may not do that.
    Scope,
    /// More requests a second than its name may send.
    Rate,
    /// More requests at a time than its name may send.
    InFlight,
    /// The endpoint is served at another listener.
    Listener,
}

impl AuthReloadOutcome {
    pub const ALL: [Self; 2] = [Self::Success, Self::Failure];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

impl AccessRefusalReason {
    pub const ALL: [Self; 6] = [
        Self::NoToken,
        Self::UnknownToken,
        Self::Scope,
        Self::Rate,
        Self::InFlight,
        Self::Listener,
    ];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::UnknownToken => "unknown_token",
            Self::Scope => "scope",
            Self::Rate => "rate",
            Self::InFlight => "in_flight",
            Self::Listener => "listener",
        }
    }
}

impl AccessStats {
    pub fn count_reload(&self, outcome: AuthReloadOutcome) {
        self.reloads[outcome as usize].fetch_add(1, Relaxed);
    }

    pub fn reloads(&self, outcome: AuthReloadOutcome) -> u64 {
        self.reloads[outcome as usize].load(Relaxed)
    }

    pub fn count_refusal(&self, reason: AccessRefusalReason) {
        self.refusals[reason as usize].fetch_add(1, Relaxed);
    }

    /// Whether a caller without a name may have a log line. Exact enough: lines at the turn of a
    /// second may count twice.
    pub fn take_unnamed_line(&self, now_ns: u64) -> bool {
        let second = now_ns / SECOND;
        if self.unnamed_second.swap(second, Relaxed) != second {
            self.unnamed_lines.store(0, Relaxed);
        }
        self.unnamed_lines.fetch_add(1, Relaxed) < MAX_UNNAMED
    }

    pub fn refusals(&self, reason: AccessRefusalReason) -> u64 {
        self.refusals[reason as usize].load(Relaxed)
    }
}

#[cfg(test)]
#[path = "access_stats_tests.rs"]
mod tests;
