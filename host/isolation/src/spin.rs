//! Polling before a thread sleeps, where that mostly succeeds: waking a thread takes longer than
//! many models do.

use std::time::{Duration, Instant};

/// Number of waits without polling after several in a row have polled in vain. After the first one
/// it is one, then it doubles: a peer that has lost its core once is soon back.
const MAX_BACKOFF: u32 = 32;
/// Looks between two calls of the scheduler.
const LOOKS: u32 = 16;

/// Decides how long a wait polls before the thread sleeps; polls in vain double the number of waits
/// that sleep at once.
pub struct Spin {
    limit: Duration,
    /// Number of further waits that do not poll.
    skip: u32,
    /// Value of `skip` after the next poll in vain.
    backoff: u32,
}

impl Spin {
    /// Polls for `limit` at most.
    pub fn new(limit: Duration) -> Self {
        Self { limit, skip: 0, backoff: 1 }
    }

    /// Polls until `ready`, if earlier calls suggest that it is soon. Returns whether it is.
    pub fn until(&mut self, mut ready: impl FnMut() -> bool) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return ready();
        }
        let mut end = None;
        loop {
            for _ in 0..LOOKS {
                if ready() {
                    self.backoff = 1;
                    return true;
                }
                std::hint::spin_loop();
            }
            if Instant::now() >= *end.get_or_insert_with(|| Instant::now() + self.limit) {
                self.skip = self.backoff;
                self.backoff = (2 * self.backoff).min(MAX_BACKOFF);
                return false;
            }
            // The peer may need this core.
            std::thread::yield_now();
        }
    }
}
