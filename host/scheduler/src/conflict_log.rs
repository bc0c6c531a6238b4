//! Warnings about a START before the sequence's END. Limited in rate: clients that never send END
//! would fill the log.

use trtserver_request::CorrelationId;

#[derive(Default)]
pub struct ConflictLog {
    /// Later warnings are suppressed until then.
    quiet_until: u64,
    suppressed: u64,
}

impl ConflictLog {
    const INTERVAL_NS: u64 = 1_000_000_000;

    /// Whether to log a conflict; if so, how many were suppressed since the last one.
    pub fn admit(&mut self, now: u64) -> Option<u64> {
        if now < self.quiet_until {
            self.suppressed += 1;
            return None;
        }
        self.quiet_until = now.saturating_add(Self::INTERVAL_NS);
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// Logs a conflict that was admitted.
pub fn warn_conflict(model: &str, sequence: &CorrelationId, suppressed: u64) {
    let more = match suppressed {
        0 => String::new(),
        n => format!(" {n} more such conflicts of this model were not logged."),
    };
    tracing::warn!(
        "sequence {sequence} for model '{model}' has a conflict. The previous sequence did not end before \
         this sequence start. Previous sequence will be terminated early.{more}"
    );
}

#[cfg(test)]
#[path = "conflict_log_tests.rs"]
mod tests;
