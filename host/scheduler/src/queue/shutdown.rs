//! The end of a queue: closed, out of service after a panic or without instances, and sequences
//! whose instance lost its state.

use super::{QueueState, RequestQueue};
use crate::batcher::{BatchDecision, BatchEntry, WakeTarget};
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;
use trtserver_base::stats::FailureReason;

impl RequestQueue {
    /// Accepts no more requests; queued requests are still executed.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.delay_hook = None;
        let QueueState { batcher, wakes, .. } = &mut *state;
        batcher.close(wakes);
        state.instances.wake_all();
        self.release(state);
    }

    /// An instance ended by a panic: waiting and later requests fail.
    pub fn take_out_of_service(&self) {
        self.refuse_all(&Error::internal(format!(
            "model '{}' is out of service: an instance ended by a fault of the server; see its log",
            self.signature.model
        )));
    }

    /// `instance` executes no further batch. If it was the last one, or if it may hold sequences,
    /// waiting and later requests fail with `why`; then the result is true.
    pub fn retire(&self, instance: usize, why: &Error) -> bool {
        let Some(remaining) = self.take_out(instance) else { return false };
        if !remaining {
            self.refuse_all(why);
        }
        !remaining
    }

    /// Removes an instance of a queue without sequences: it executes no further batch and its
    /// thread ends. Others, of which there is one at least, execute what is queued.
    pub fn remove_instance(&self, instance: usize) {
        self.take_out(instance);
    }

    /// Retires an instance. Returns whether others can execute its requests; `None` if it was
    /// retired before.
    fn take_out(&self, instance: usize) -> Option<bool> {
        let mut state = self.lock();
        if !state.instances.retire(instance) {
            return None;
        }
        let remaining = !state.batcher.is_sequence() && state.instances.any_in_service();
        state.instances.wake_limited(instance);
        state.standby.withdraw(instance);
        // Its own thread ends, and another instance takes what it was woken for.
        state.wakes.extend([WakeTarget::Instance(instance), WakeTarget::Any]);
        self.release(state);
        Some(remaining)
    }

    fn refuse_all(&self, why: &Error) {
        self.lock().out_of_service = Some(why.clone());
        self.close();
        let mut entries = Vec::new();
        let mut state = self.lock();
        for instance in 0..state.instances.count() {
            let batcher = &mut state.batcher;
            while let BatchDecision::Batch(_) = batcher.next_batch(instance, u64::MAX, &mut entries)
            {
            }
        }
        self.release(state);
        for entry in entries {
            if let BatchEntry::Request(request) = entry {
                let _ = request.responder.fail(why.clone(), FailureReason::Other);
            }
        }
    }

    /// The process of `instance` ended and lost its state: sequences that have begun there cannot
    /// continue.
    pub fn lose_instance_state(&self, instance: usize) {
        let mut state = self.lock();
        let now = now_ns();
        let QueueState { batcher, refused, wakes, .. } = &mut *state;
        batcher.lose(instance, now, refused, wakes);
        self.release(state);
    }
}

#[cfg(test)]
#[path = "shutdown_tests.rs"]
mod tests;
