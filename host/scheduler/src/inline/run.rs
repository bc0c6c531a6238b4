//! One inline run: this thread has the instance until the queue has no batch, the run is stopped,
//! or it panics.

use super::InlinePermit;
use crate::{RequestBatch, RequestQueue};

/// The exclusive use of an instance that is in state `Inline`. Ends it when dropped.
pub struct InlineRun<'a> {
    queue: &'a RequestQueue,
    instance: usize,
    ended: bool,
    _permit: InlinePermit,
}

impl<'a> InlineRun<'a> {
    /// `queue` has put `instance` into state `Inline`.
    pub(crate) fn new(queue: &'a RequestQueue, instance: usize, permit: InlinePermit) -> Self {
        Self { queue, instance, ended: false, _permit: permit }
    }

    /// Takes the next batch. False when there is none now; then the run has ended.
    pub fn next_batch(&mut self, now: u64, batch: &mut RequestBatch) -> bool {
        let taken = self.queue.take_inline(self.instance, now, batch);
        self.ended = !taken;
        taken
    }

    /// Takes the next batch if it is ready. The run goes on in either case.
    pub fn take_ready(&mut self, batch: &mut RequestBatch) -> bool {
        self.queue.take_ready(self.instance, batch)
    }

    /// Ends the run before [`Self::next_batch`] does. `outstanding`: the backend accepts no batch
    /// until it has responded.
    pub fn stop(mut self, outstanding: bool, batch: &mut RequestBatch) {
        self.ended = true;
        self.queue.stop_inline(self.instance, outstanding, batch);
    }
}

impl Drop for InlineRun<'_> {
    /// After a panic the instance cannot continue, as when its own thread panics: requests must not
    /// wait for it.
    fn drop(&mut self) {
        if !self.ended {
            self.queue.abort_inline(self.instance);
        }
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
