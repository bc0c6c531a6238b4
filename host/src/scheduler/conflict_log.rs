//! How often it is said that a sequence begins anew before its end: clients that never send END would fill the log.

#[derive(Default)]
pub struct ConflictLog {
    /// Nothing more is said before.
    quiet_until: u64,
    untold: u64,
}

impl ConflictLog {
    const SILENCE_NS: u64 = 1_000_000_000;

    /// Whether to say this one; if so, how many were not said since the last.
    pub fn tell(&mut self, now: u64) -> Option<u64> {
        if now < self.quiet_until {
            self.untold += 1;
            return None;
        }
        self.quiet_until = now.saturating_add(Self::SILENCE_NS);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
#[path = "conflict_log_tests.rs"]
mod tests;
