//! The default scheduler: one FIFO per version, shared by its instances; each takes one request at a time.

use crate::clock::now_ns;
use crate::error::{Code, Error};
use crate::request::{InferRequest, Reply};
use crate::stats::FailureReason;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The FIFO between front ends and instances. Its lock is held for a push or a pop only.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<InferRequest>,
    /// Instances asleep in `take`; nobody to wake saves the system call.
    idle: usize,
    closed: bool,
}

impl Queue {
    /// Appends a request. A closed queue hands it back.
    fn push(&self, request: InferRequest) -> Result<(), InferRequest> {
        let mut state = self.lock();
        if state.closed {
            return Err(request);
        }
        state.waiting.push_back(request);
        let wake = state.idle > 0;
        drop(state);
        if wake {
            self.arrived.notify_one();
        }
        Ok(())
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
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// No more requests come in; what waits is still executed.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Ends everything that waits with `error`.
    pub fn fail_all(&self, error: &Error) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for request in waiting {
            let _ = request.reply.fail(error.clone(), FailureReason::Other);
        }
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

/// The way in for front ends.
pub struct Scheduler {
    queue: Arc<Queue>,
}

impl Scheduler {
    pub fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }

    /// Queues a checked request. The reply is answered whatever happens.
    pub fn submit(&self, request: InferRequest) {
        Reply::queued(&request, now_ns());
        if let Err(request) = self.queue.push(request) {
            let error = Error::unavailable(
                "Server is stopping, scheduler for model has stopped accepting new inference requests",
            );
            let _ = request.reply.fail(error, FailureReason::Other);
        }
    }

    /// Requests accepted and not yet executing.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Stops accepting; what waits is still executed.
    pub fn close(&self) {
        self.queue.close();
    }
}
