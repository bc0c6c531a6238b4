//! Batches of instances whose executions need resources: the queue asks the rate limiter before it
//! hands one out.
//!
//! An instance without a grant is `Limited`. Its batch stays in the queue: requests may still join
//! it, time out or be cancelled, or go to another instance. The lock of the limiter is taken under
//! the queue's; whom it wakes is told afterwards.

use super::{QueueState, RequestBatch, RequestQueue};
use crate::batcher::{BatchDecision, BatchEntry, CloseReason, WakeTarget};
use crate::limiter::{GrantAnswer, GrantObserver};
use trtserver_base::clock::now_ns;
use trtserver_request::InferRequest;

/// What an instance does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextBatch {
    Taken(CloseReason),
    Wait {
        until: Option<u64>,
    },
    /// There is a batch. The limiter says when the instance may take it.
    Limited,
}

impl From<BatchDecision> for NextBatch {
    fn from(decision: BatchDecision) -> Self {
        match decision {
            BatchDecision::Batch(reason) => Self::Taken(reason),
            BatchDecision::Wait { until } => Self::Wait { until },
        }
    }
}

impl GrantObserver for RequestQueue {
    fn execution_granted(&self, instance: usize) {
        let mut state = self.lock();
        state.instances.wake_limited(instance);
        self.release(state);
    }
}

impl QueueState {
    /// The next batch of an instance that needs a grant for it.
    pub(super) fn next_limited(
        &mut self,
        instance: usize,
        now: u64,
        entries: &mut Vec<BatchEntry<InferRequest>>,
    ) -> NextBatch {
        let Some(limit) = self.instances.limit(instance) else {
            return self.batcher.next_batch(instance, now, entries).into();
        };
        if !self.batcher.has_batch(instance, now) {
            self.limiter_wakes.append(limit.withdraw());
            return self.batcher.next_batch(instance, now, entries).into();
        }
        let grant = match limit.ask(now) {
            GrantAnswer::Granted(grant) => grant,
            GrantAnswer::Waiting { new } => {
                // Another instance may have a smaller demand.
                if new && !self.batcher.is_sequence() && self.any_thread_sleeps() {
                    self.wakes.push(WakeTarget::Any);
                }
                return NextBatch::Limited;
            }
        };
        let decision = self.batcher.next_batch(instance, now, entries);
        match decision {
            BatchDecision::Batch(_) => self.granted = Some(grant),
            BatchDecision::Wait { .. } => self.limiter_wakes.append(limit.give_back(&grant)),
        }
        decision.into()
    }

    /// `instance` comes back from the execution of `batch`.
    pub(super) fn settle(&mut self, instance: usize, batch: &mut RequestBatch) {
        if let Some(grant) = batch.grant.take()
            && let Some(limit) = self.instances.limit(instance)
        {
            let now = now_ns();
            let asks =
                !self.instances.is_retired(instance) && self.batcher.has_batch(instance, now);
            self.limiter_wakes.append(grant.returned(&limit, asks, now));
        }
    }

    /// `instance` ends: it does not wait for a grant any more.
    pub(super) fn withdraw(&mut self, instance: usize) {
        if let Some(limit) = self.instances.limit(instance) {
            self.limiter_wakes.append(limit.withdraw());
        }
    }
}

#[cfg(test)]
#[path = "limited_tests.rs"]
mod tests;
