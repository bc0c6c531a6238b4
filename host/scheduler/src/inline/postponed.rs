//! An inline run that a network thread has put off to the end of its turn, so that requests of its
//! other connections join the batch.

use crate::RequestQueue;
use std::sync::Arc;

/// The duty to run an instance in state `Postponed`. Dropped without
/// [`execute`](PostponedRun::execute), it leaves the batch to the instance's own thread.
pub struct PostponedRun {
    queue: Arc<RequestQueue>,
    instance: usize,
    ended: bool,
}

impl PostponedRun {
    /// `queue` has put `instance` into state `Postponed`.
    pub(crate) fn new(queue: Arc<RequestQueue>, instance: usize) -> Self {
        Self { queue, instance, ended: false }
    }

    /// Runs the instance on this thread if it still waits for that and the thread may; otherwise
    /// its own thread does. To be called without locks.
    pub fn execute(mut self) {
        self.ended = true;
        self.queue.run_postponed(self.instance);
    }
}

impl Drop for PostponedRun {
    fn drop(&mut self) {
        if !self.ended {
            self.queue.hand_over_postponed(self.instance);
        }
    }
}
