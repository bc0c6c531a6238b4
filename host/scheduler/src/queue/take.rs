//! Batches for instances: taken by their own threads, which sleep while there is none, and by
//! inline runs.

use super::instances::{AfterInline, InstanceState};
use super::limited::NextBatch;
use super::{QueueState, RequestQueue};
use crate::batcher::{BatchEntry, CloseReason, WakeTarget};
use crate::delay_hook;
use crate::limiter::ExecutionGrant;
use parking_lot::MutexGuard;
use std::sync::{Arc, Weak};
use std::time::Duration;
use trtserver_base::clock::now_ns;
use trtserver_request::InferRequest;

/// What an instance executes at once. Reused from batch to batch.
#[derive(Default)]
pub struct RequestBatch {
    /// Requests in batch order, with null requests for idle sequence slots.
    pub requests: Vec<InferRequest>,
    pub close_reason: Option<CloseReason>,
    /// No request was waiting when the batch was taken.
    pub none_waiting: bool,
    pub(super) entries: Vec<BatchEntry<InferRequest>>,
    /// The resources of the batch, if its instance has a demand.
    pub grant: Option<Arc<ExecutionGrant>>,
}

impl RequestQueue {
    /// Waits for a batch for `instance`, whose own thread this is. False when the queue is closed
    /// and empty, or the instance is retired.
    pub fn take(&self, instance: usize, batch: &mut RequestBatch) -> bool {
        batch.requests.clear();
        let mut state = self.lock();
        state.settle(instance, batch);
        loop {
            if state.instances.is_retired(instance) {
                state.withdraw(instance);
                self.release(state);
                return false;
            }
            let now = now_ns();
            state.expire(now);
            let next = state.next_batch(instance, now, &mut batch.entries);
            if let NextBatch::Taken(reason) = next {
                self.taken(state, reason, batch);
                return true;
            }
            if state.has_effects() {
                self.release(state);
                state = self.lock();
                continue;
            }
            if state.closed && state.batcher.waiting() == 0 {
                return false;
            }
            let ns = match next {
                NextBatch::Wait { until: Some(until) } => Some(until.saturating_sub(now)),
                _ => None,
            };
            state = self.sleep(state, instance, ns, matches!(next, NextBatch::Limited));
        }
    }

    /// Takes a batch for `instance`, which this thread runs, if one is ready.
    pub(crate) fn take_ready(&self, instance: usize, batch: &mut RequestBatch) -> bool {
        batch.requests.clear();
        let mut state = self.lock();
        // A limited instance has one batch at a time here: it may not wait for a grant.
        if state.batcher.waiting() == 0
            || state.instances.is_retired(instance)
            || state.instances.is_limited(instance)
        {
            return false;
        }
        let now = now_ns();
        state.expire(now);
        match state.next_batch(instance, now, &mut batch.entries) {
            NextBatch::Taken(reason) => {
                self.taken(state, reason, batch);
                true
            }
            NextBatch::Wait { .. } | NextBatch::Limited => {
                self.release(state);
                false
            }
        }
    }

    /// Executions of `instance` need grants of the rate limiter.
    pub fn needs_grants(&self, instance: usize) -> bool {
        self.lock().instances.limit(instance).is_some()
    }

    /// Takes the batch after the one that `instance` is about to execute, if it is ready and no
    /// other instance could begin it.
    pub fn take_ahead(&self, instance: usize, batch: &mut RequestBatch) -> bool {
        let free = self.lock().instances.any_free_beside(instance);
        if free {
            batch.requests.clear();
            return false;
        }
        self.take_ready(instance, batch)
    }

    /// Takes a batch for `instance`, which this thread runs inline. False when there is none now:
    /// the run has ended.
    pub(crate) fn take_inline(&self, instance: usize, now: u64, batch: &mut RequestBatch) -> bool {
        batch.requests.clear();
        let mut state = self.lock();
        state.settle(instance, batch);
        if state.instances.is_retired(instance) {
            state.instances.finish_inline(instance, AfterInline::Wake);
            self.release(state);
            return false;
        }
        state.expire(now);
        match state.next_batch(instance, now, &mut batch.entries) {
            NextBatch::Taken(reason) => {
                self.taken(state, reason, batch);
                true
            }
            NextBatch::Limited => {
                state.instances.finish_inline(instance, AfterInline::Limit);
                self.release(state);
                false
            }
            NextBatch::Wait { until } => {
                // Only its own thread may wait for a delay to pass, or end.
                let needed = until.is_some() || state.closed;
                let after = if needed { AfterInline::Wake } else { AfterInline::Sleep };
                state.instances.finish_inline(instance, after);
                self.release(state);
                false
            }
        }
    }

    /// Ends an inline run early. `outstanding`: the own thread has to wait for responses before it
    /// takes a batch.
    pub(crate) fn stop_inline(&self, instance: usize, outstanding: bool, batch: &mut RequestBatch) {
        let mut state = self.lock();
        state.settle(instance, batch);
        let after = if outstanding {
            AfterInline::Drain
        } else if state.closed
            || state.batcher.waiting() > 0
            || state.instances.is_retired(instance)
        {
            AfterInline::Wake
        } else {
            AfterInline::Sleep
        };
        state.instances.finish_inline(instance, after);
        self.release(state);
    }

    /// Ends an inline run that panicked.
    pub(crate) fn abort_inline(&self, instance: usize) {
        self.lock().instances.finish_inline(instance, AfterInline::Wake);
        self.take_out_of_service();
    }

    /// Releases the lock and completes `batch` from the entries that the batcher chose.
    pub(super) fn taken(
        &self,
        mut state: MutexGuard<'_, QueueState>,
        reason: CloseReason,
        batch: &mut RequestBatch,
    ) {
        batch.close_reason = Some(reason);
        batch.none_waiting = state.batcher.waiting() == 0;
        batch.grant = state.granted.take();
        state.wake_for_remaining();
        self.release(state);
        self.assembler.assemble(&mut batch.entries, &mut batch.requests);
        if batch.requests.iter().any(|request| request.client.is_some()) {
            end_turns(&mut batch.requests);
        }
    }

    /// Sleeps until `instance` is woken, at most `ns` nanoseconds. It has no batch; `limited`: or no
    /// grant for it.
    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
        instance: usize,
        ns: Option<u64>,
        limited: bool,
    ) -> MutexGuard<'a, QueueState> {
        use InstanceState::{Idle, Inline, Limited, Postponed};
        match limited {
            true => state.instances.sleep_limited(instance),
            false => state.instances.sleep(instance),
        }
        let woken = self.threads.condvar_for(instance);
        let mut asleep: &[InstanceState] = &[Idle, Limited, Inline, Postponed];
        if let Some(ns) = ns {
            woken.wait_for(&mut state, Duration::from_nanos(ns));
            // Waking early is harmless, since the batcher is asked for a batch afterwards. But an
            // inline run has to end first.
            asleep = &[Inline];
        }
        while asleep.contains(&state.instances.state(instance)) {
            woken.wait(&mut state);
        }
        if state.instances.woke(instance) {
            let inline = state.instances.inline(instance).and_then(Weak::upgrade);
            drop(state);
            // The next step of a sequence reads the states that these responses write.
            if let Some(inline) = inline {
                inline.wait_for_capacity();
            }
            state = self.lock();
        }
        state
    }
}

/// The requests do not wait any more.
#[cold]
fn end_turns(requests: &mut [InferRequest]) {
    let now = now_ns();
    requests
        .iter_mut()
        .filter_map(|request| request.client.as_mut())
        .for_each(|turn| turn.end(now));
}

impl QueueState {
    pub(super) fn next_batch(
        &mut self,
        instance: usize,
        now: u64,
        entries: &mut Vec<BatchEntry<InferRequest>>,
    ) -> NextBatch {
        if let Some(hook) = self.delay_hook {
            if !hook.is_satisfied(self.batcher.waiting(), self.batcher.backlog()) {
                let interval = delay_hook::POLL_INTERVAL.as_nanos() as u64;
                return NextBatch::Wait { until: Some(now + interval) };
            }
            self.delay_hook = None;
        }
        if self.instances.is_limited(instance) {
            return self.next_limited(instance, now, entries);
        }
        self.batcher.next_batch(instance, now, entries).into()
    }

    /// Something is to be done once the lock is released.
    pub(super) fn has_effects(&self) -> bool {
        !self.refused.is_empty() || !self.wakes.is_empty() || !self.limiter_wakes.is_empty()
    }

    /// After a batch was taken: another instance asks for the next one. Sequences wake their own
    /// instances.
    fn wake_for_remaining(&mut self) {
        if self.batcher.waiting() > 0 && !self.batcher.is_sequence() {
            self.wakes.push(WakeTarget::Any);
        }
    }
}
