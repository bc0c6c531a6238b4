//! Polling before a thread waits for a response, where that mostly succeeds: waking a thread takes
//! longer than many models do.

use std::time::{Duration, Instant};

/// How long one wait polls.
pub(super) const LIMIT: Duration = Duration::from_micros(50);
/// Waits without polling after several in a row have polled in vain. After the first one it is one,
/// then it doubles.
const MAX_BACKOFF: u32 = 64;

/// Decides whether a wait for a response polls first: polls in vain double the number of waits
/// that go to sleep at once.
pub(super) struct SpinPolicy {
    /// Number of further waits that do not poll.
    skip: u32,
    /// Value of `skip` after the next poll in vain.
    backoff: u32,
}

impl Default for SpinPolicy {
    fn default() -> Self {
        Self { skip: 0, backoff: 1 }
    }
}

impl SpinPolicy {
    /// Polls until `ready` returns something, for at most [`LIMIT`], if earlier calls suggest that
    /// it soon does.
    pub fn until<T>(&mut self, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(value) = ready() {
                self.backoff = 1;
                return Some(value);
            }
            if Instant::now() >= end {
                self.skip = self.backoff;
                self.backoff = (2 * self.backoff).min(MAX_BACKOFF);
                return None;
            }
            // The server may need this processor.
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
#[path = "spin_tests.rs"]
mod tests;
