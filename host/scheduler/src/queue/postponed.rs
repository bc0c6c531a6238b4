//! Inline runs that wait for the end of a network thread's turn (`inline/postponement.rs`): how they
//! begin and end.

use super::instances::InstanceState;
use super::{QueueState, RequestQueue};
use crate::inline::{InlineInstance, InlinePermit, InlineRun, PostponedRun, can_postpone};
use std::sync::{Arc, Weak};
use trtserver_base::clock::now_ns;

/// A thread that has many connections to read may take longer for its turn; another one that brings
/// a request executes then.
///
/// In tests it is longer than the pauses of a busy machine.
const MAX_POSTPONED_NS: u64 = if cfg!(test) { 1_000_000_000 } else { 200_000 };

impl RequestQueue {
    /// Puts off the run of `ordinal`, which is about to be woken, to the end of this thread's turn.
    pub(super) fn postpone(
        &self,
        state: &mut QueueState,
        instance: &dyn InlineInstance,
        ordinal: usize,
        now: u64,
    ) -> Option<PostponedRun> {
        let full = self.joined_rows?;
        if state.batcher.waiting() >= full || !instance.gains_by_waiting() || !can_postpone() {
            return None;
        }
        let queue = self.me.upgrade()?;
        state.instances.postpone(ordinal, now);
        Some(PostponedRun::new(queue, ordinal))
    }

    /// The instance that waits for the end of a turn, if another request would not join its batch, or
    /// it has waited long enough.
    pub(super) fn find_due_instance(&self, state: &QueueState, now: u64) -> Option<usize> {
        let full = self.joined_rows?;
        let (ordinal, since) = state.instances.postponed()?;
        let waited_ns = now.saturating_sub(since);
        (state.batcher.waiting() >= full || waited_ns > MAX_POSTPONED_NS).then_some(ordinal)
    }

    /// Starts the postponed run of `ordinal` on this thread, if that may execute.
    pub(super) fn start_postponed(
        &self,
        state: &mut QueueState,
        ordinal: usize,
        now: u64,
    ) -> Option<(Arc<dyn InlineInstance>, InlineRun<'_>)> {
        let instance = state.instances.inline(ordinal).and_then(Weak::upgrade)?;
        let permit = InlinePermit::try_acquire(now)?;
        state.instances.start_postponed(ordinal);
        Some((instance, InlineRun::new(self, ordinal, permit)))
    }

    /// The turn has ended: runs `instance` on this thread, or wakes its own thread. Nothing if
    /// another thread was faster.
    pub(crate) fn run_postponed(&self, ordinal: usize) {
        let now = now_ns();
        let mut state = self.lock();
        if state.instances.state(ordinal) != InstanceState::Postponed {
            return;
        }
        let started = self.start_postponed(&mut state, ordinal, now);
        if started.is_none() {
            state.instances.hand_over_postponed(ordinal);
        }
        self.release(state);
        if let Some((instance, run)) = started {
            instance.run(run, now);
        }
    }

    /// The turn does not end: wakes the own thread of `instance`, if it still waits for it.
    pub(crate) fn hand_over_postponed(&self, ordinal: usize) {
        let mut state = self.lock();
        if state.instances.state(ordinal) == InstanceState::Postponed {
            state.instances.hand_over_postponed(ordinal);
        }
        self.release(state);
    }
}

#[cfg(test)]
#[path = "postponed_tests.rs"]
mod tests;
