//! The end of a queue: closed, out of service after a panic, and sequences whose instance lost its state.

use super::{Queue, State};
use crate::clock::now_ns;
use crate::error::Error;
use crate::scheduler::batcher::{BatchDecision, BatchEntry};
use crate::stats::FailureReason;

impl Queue {
    /// Accepts no more requests; those that wait are still executed.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.delay_hook = None;
        let State { batcher, wakes, .. } = &mut *state;
        batcher.close(wakes);
        state.instances.wake_all();
        self.release(state);
    }

    /// An instance ended by a panic: waiting and later requests fail.
    pub fn take_out_of_service(&self) {
        self.lock().out_of_service = true;
        self.close();
        let mut entries = Vec::new();
        let mut state = self.lock();
        for instance in 0..state.instances.count() {
            while let BatchDecision::Batch(_) = state.next_batch(instance, u64::MAX, &mut entries) {
            }
        }
        self.release(state);
        for entry in entries {
            if let BatchEntry::Request(request) = entry {
                let _ = request.responder.fail(self.out_of_service(), FailureReason::Other);
            }
        }
    }

    /// The process of `instance` ended and lost its state: sequences that have begun there cannot continue.
    pub fn lose_instance_state(&self, instance: usize) {
        let mut state = self.lock();
        let now = now_ns();
        let State { batcher, refused, wakes, .. } = &mut *state;
        batcher.lose(instance, now, refused, wakes);
        self.release(state);
    }

    pub(super) fn out_of_service(&self) -> Error {
        Error::internal(format!(
            "model '{}' is out of service: an instance ended by a fault of the server; see its log",
            self.signature.model
        ))
    }
}

#[cfg(test)]
#[path = "shutdown_tests.rs"]
mod tests;
