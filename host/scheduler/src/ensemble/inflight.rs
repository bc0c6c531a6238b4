//! `max_inflight_requests`: the maximum number of requests that each step of an ensemble has at a
//! time, for all requests to the ensemble together.
//!
//! A request beyond the limit waits, without a thread. If it takes a response of a decoupled step,
//! the backend of that step is blocked when it sends its next response.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_base::error::{Code, Error, Result};
use trtserver_request::unread::UnreadBacklog;
use trtserver_request::{CancelToken, StreamLimit, UnreadResponse};

/// How often a waiting backend looks for a cancellation.
const LOOK: Duration = Duration::from_millis(50);
/// After this time a blocked backend sends its response in spite of the limit, as in Triton.
const MAX_WAIT: Duration = Duration::from_secs(300);

type Submission = Box<dyn FnOnce(InflightSlot) + Send>;

/// The requests of each step.
pub struct InflightLimit {
    max: usize,
    steps: Mutex<Vec<StepSlots>>,
    freed: Condvar,
}

#[derive(Default)]
struct StepSlots {
    taken: usize,
    waiting: VecDeque<Submission>,
    /// A thread is submitting waiting requests.
    submitting: bool,
}

impl InflightLimit {
    /// `None` without a limit.
    pub fn new(max: usize, steps: usize) -> Option<Arc<Self>> {
        let steps = (0..steps).map(|_| StepSlots::default()).collect();
        let limit = Self { max, steps: Mutex::new(steps), freed: Condvar::new() };
        (max > 0).then(|| Arc::new(limit))
    }

    /// Calls `submit` with a slot of the step: now, or when one is free.
    pub fn submit(self: &Arc<Self>, step: usize, submit: Submission) {
        let mut steps = self.steps.lock();
        let slots = &mut steps[step];
        if !slots.has_free(self.max) {
            slots.waiting.push_back(submit);
            return;
        }
        slots.taken += 1;
        drop(steps);
        submit(InflightSlot { limit: Arc::clone(self), step });
    }

    /// Frees a slot, and submits a request that waits for it.
    fn release(self: &Arc<Self>, step: usize) {
        let mut steps = self.steps.lock();
        steps[step].taken -= 1;
        // A submission that fails at once releases its slot before it returns: the caller below
        // takes the next one.
        if std::mem::replace(&mut steps[step].submitting, true) {
            return;
        }
        while steps[step].taken < self.max
            && let Some(next) = steps[step].waiting.pop_front()
        {
            steps[step].taken += 1;
            drop(steps);
            next(InflightSlot { limit: Arc::clone(self), step });
            steps = self.steps.lock();
        }
        steps[step].submitting = false;
        drop(steps);
        self.freed.notify_all();
    }
}

/// The right to one request of a step.
pub struct InflightSlot {
    limit: Arc<InflightLimit>,
    step: usize,
}

impl Drop for InflightSlot {
    fn drop(&mut self) {
        self.limit.release(self.step);
    }
}

impl StepSlots {
    fn has_free(&self, max: usize) -> bool {
        self.taken < max && self.waiting.is_empty()
    }
}

/// The stream of a decoupled step: its backend waits until each of the steps `readers` has a slot.
pub struct StepStream {
    pub limit: Arc<InflightLimit>,
    pub readers: Vec<usize>,
    pub ensemble: Arc<str>,
    /// The stream of the request.
    pub stream: Arc<dyn StreamLimit>,
}

impl StepStream {
    fn has_free(&self, steps: &[StepSlots]) -> bool {
        self.readers.iter().all(|step| steps[*step].has_free(self.limit.max))
    }

    fn wait(&self, cancel: &CancelToken) {
        let since = Instant::now();
        let mut steps = self.limit.steps.lock();
        while !self.has_free(&steps) && !cancel.is_cancelled() {
            if since.elapsed() >= MAX_WAIT {
                let name = &self.ensemble;
                tracing::error!(
                    "ensemble '{name}': a step after a decoupled step had no free slot for {MAX_WAIT:?} \
                     (max_inflight_requests); the response is passed on"
                );
                return;
            }
            self.limit.freed.wait_for(&mut steps, LOOK);
        }
    }
}

impl StreamLimit for StepStream {
    fn admit(
        self: Arc<Self>,
        bytes: usize,
        wait: bool,
        cancel: &CancelToken,
    ) -> Result<UnreadResponse> {
        if wait {
            self.wait(cancel);
        } else if !self.has_free(&self.limit.steps.lock()) {
            return Err(Error::new(
                Code::ResourceExhausted,
                format!(
                    "in ensemble '{}', the next step has as many requests as max_inflight_requests allows",
                    self.ensemble
                ),
            ));
        }
        Arc::clone(&self.stream).admit(bytes, wait, cancel)
    }

    fn backlog(&self) -> UnreadBacklog {
        self.stream.backlog()
    }

    fn stream(&self) -> u64 {
        self.stream.stream()
    }

    fn timeout(&self) -> Duration {
        self.stream.timeout()
    }
}
