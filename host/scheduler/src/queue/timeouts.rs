//! Requests that leave the queue unexecuted: cancelled ones, and those whose timeout passes while
//! every instance is busy.

use super::{QueueState, RequestQueue};
use crate::batcher::{QueueTicket, WakeTarget};
use trtserver_base::clock::now_ns;
use trtserver_base::timer::DeadlineCallback;
use trtserver_request::CancelObserver;

/// The timer calls a queue no more often. Only sequence idle limits of microseconds would need
/// more, while a request is executed.
pub(super) const MIN_TIMER_INTERVAL_NS: u64 = 200_000;

impl CancelObserver for RequestQueue {
    fn cancelled(&self, ticket: u64) {
        let mut state = self.lock();
        let now = now_ns();
        let QueueState { batcher, refused, wakes, .. } = &mut *state;
        batcher.cancel(QueueTicket(ticket), now, refused, wakes);
        state.wake_if_batch_ready(now);
        self.release(state);
    }
}

impl DeadlineCallback for RequestQueue {
    fn on_deadline(&self) {
        let mut state = self.lock();
        state.timer_at = u64::MAX;
        let now = now_ns();
        state.expire(now);
        state.wake_if_batch_ready(now);
        let effects = self.finish_step(&mut state, now + MIN_TIMER_INTERVAL_NS);
        drop(state);
        self.apply(effects);
    }
}

impl QueueState {
    pub(super) fn expire(&mut self, now: u64) {
        self.batcher.expire(now, &mut self.refused, &mut self.wakes);
    }

    /// Called after requests left the queue or changed places: the remaining requests may form a
    /// batch now, while idle instances and copy threads sleep until a later time.
    pub(super) fn wake_if_batch_ready(&mut self, now: u64) {
        if self.any_thread_sleeps() && self.batcher.is_batch_ready(now) {
            self.wakes.push(WakeTarget::Any);
        }
    }
}

#[cfg(test)]
#[path = "timeouts_tests.rs"]
mod tests;
