//! The default scheduler: one FIFO per version, shared by its instances; each takes one request at a time.

use crate::clock::now_ns;
use crate::error::{Code, Error};
use crate::request::{InferRequest, Reply};
use crate::stats::FailureReason;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The FIFO between front ends and instances. Its lock is held for a push or a pop only.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<InferRequest>,
    /// Instances asleep in `take` that nobody has called yet: a burst of requests calls each once,
    /// and a busy model is not called at all, which saves the system calls.
    idle: usize,
    /// Instances called and not awake yet.
    called: usize,
    closed: bool,
}

impl Queue {
    /// Queues a checked request. The reply is answered whatever happens.
    pub fn submit(&self, request: InferRequest) {
        Reply::queued(&request, now_ns());
        if let Some(request) = self.push(request) {
            let error = Error::unavailable(
                "Server is stopping, scheduler for model has stopped accepting new inference requests",
            );
            let _ = request.reply.fail(error, FailureReason::Other);
        }
    }

    /// Appends a request. A closed queue hands it back.
    fn push(&self, request: InferRequest) -> Option<InferRequest> {
        let mut state = self.lock();
        if state.closed {
            return Some(request);
        }
        state.waiting.push_back(request);
        let wake = state.idle > 0;
        if wake {
            state.idle -= 1;
            state.called += 1;
        }
        drop(state);
        if wake {
            self.arrived.notify_one();
        }
        None
    }

    /// Waits for work: puts one request into `batch`. False when the queue is closed and empty.
    pub fn take(&self, batch: &mut Vec<InferRequest>) -> bool {
        let mut state = self.lock();
        loop {
            while let Some(request) = state.waiting.pop_front() {
                if let Some((error, reason)) = refuse(&request.reply, request.deadline_ns) {
                    drop(state);
                    let _ = request.reply.fail(error, reason);
                    state = self.lock();
                    continue;
                }
                batch.push(request);
                return true;
            }
            if state.closed {
                return false;
            }
            state.idle += 1;
            while state.called == 0 && !state.closed {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.called > 0 {
                state.called -= 1;
            }
        }
    }

    /// No more requests come in; what waits is still executed.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that nobody waits for any more is not executed.
fn refuse(reply: &Reply, deadline_ns: u64) -> Option<(Error, FailureReason)> {
    if reply.is_cancelled() {
        let error = Error::new(Code::Cancelled, "request was cancelled");
        return Some((error, FailureReason::Canceled));
    }
    if deadline_ns != 0 && now_ns() >= deadline_ns {
        return Some((Error::unavailable("Request timeout expired"), FailureReason::Rejected));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::testing::request;

    #[test]
    fn first_come_first_served() {
        let queue = Queue::default();
        let scheduler = &queue;
        for id in ["a", "b", "c"] {
            scheduler.submit(request(id).0);
        }
        assert_eq!(scheduler.waiting(), 3);
        for id in ["a", "b", "c"] {
            let mut batch = Vec::new();
            assert!(queue.take(&mut batch));
            assert_eq!(batch.len(), 1);
            assert_eq!(batch[0].id, id);
        }
        scheduler.close();
        assert!(!queue.take(&mut Vec::new()));
    }

    #[test]
    fn the_gone_and_the_late_are_not_executed() {
        let queue = Queue::default();
        let scheduler = &queue;
        let (gone, gone_stats, gone_told) = request("gone");
        gone.reply.cancel();
        let (mut late, late_stats, late_told) = request("late");
        late.deadline_ns = 1;
        for r in [gone, late, request("good").0] {
            scheduler.submit(r);
        }
        let mut batch = Vec::new();
        assert!(queue.take(&mut batch));
        assert_eq!(batch[0].id, "good");
        assert_eq!(gone_stats.snapshot().failures, [0, 1, 0, 0]);
        assert_eq!(late_stats.snapshot().failures, [1, 0, 0, 0]);
        let code = |told: &crate::request::testing::Told| {
            told.lock().unwrap()[0].0.as_ref().unwrap_err().code
        };
        assert_eq!((code(&gone_told), code(&late_told)), (Code::Cancelled, Code::Unavailable));
    }

    #[test]
    fn closing_executes_what_waits_and_refuses_the_rest() {
        let queue = Queue::default();
        let scheduler = &queue;
        scheduler.submit(request("in time").0);
        scheduler.close();
        let (after, _, told) = request("after");
        scheduler.submit(after);
        assert!(told.lock().unwrap()[0].0.as_ref().unwrap_err().message.contains("is stopping"));
        assert!(queue.take(&mut Vec::new()));
        assert!(!queue.take(&mut Vec::new()));
    }
}
