//! `max_inflight_requests`: at most so many requests of an ensemble's step at a time, of all requests to the ensemble together.
//!
//! A step beyond the limit waits, without a thread. Meanwhile a decoupled step whose responses it takes is held up where its
//! backend sends the next one.

use crate::error::{Code, Error, Result};
use crate::request::unread::Backlog;
use crate::request::{CancelToken, StreamLimit, Unread};
use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a waiting backend looks for a cancellation.
const LOOK: Duration = Duration::from_millis(50);
/// A backend that has waited so long sends its response all the same, as in Triton.
const MAX_WAIT: Duration = Duration::from_secs(300);

type Submission = Box<dyn FnOnce(Slot) + Send>;

/// The requests of each step.
pub struct InflightLimit {
    max: usize,
    steps: Mutex<Vec<Slots>>,
    room: Condvar,
}

#[derive(Default)]
struct Slots {
    taken: usize,
    waiting: VecDeque<Submission>,
    /// A thread is submitting what waited.
    submitting: bool,
}

impl InflightLimit {
    /// `None` without a limit.
    pub fn new(max: usize, steps: usize) -> Option<Arc<Self>> {
        let steps = (0..steps).map(|_| Slots::default()).collect();
        let limit = Self { max, steps: Mutex::new(steps), room: Condvar::new() };
        (max > 0).then(|| Arc::new(limit))
    }

    /// Calls `submit` with a slot of the step: now, or when one is free.
    pub fn submit(self: &Arc<Self>, step: usize, submit: Submission) {
        let mut steps = self.steps.lock();
        let slots = &mut steps[step];
        if !slots.has_room(self.max) {
            slots.waiting.push_back(submit);
            return;
        }
        slots.taken += 1;
        drop(steps);
        submit(Slot { limit: Arc::clone(self), step });
    }

    /// Gives a slot back, and submits what waits for it.
    fn release(self: &Arc<Self>, step: usize) {
        let mut steps = self.steps.lock();
        steps[step].taken -= 1;
        // A submission that fails at once releases its slot before it returns: the caller below takes the next one.
        if std::mem::replace(&mut steps[step].submitting, true) {
            return;
        }
        while steps[step].taken < self.max
            && let Some(next) = steps[step].waiting.pop_front()
        {
            steps[step].taken += 1;
            drop(steps);
            next(Slot { limit: Arc::clone(self), step });
            steps = self.steps.lock();
        }
        steps[step].submitting = false;
        drop(steps);
        self.room.notify_all();
    }
}

/// The right to one request of a step.
pub struct Slot {
    limit: Arc<InflightLimit>,
    step: usize,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limit.release(self.step);
    }
}

impl Slots {
    fn has_room(&self, max: usize) -> bool {
        self.taken < max && self.waiting.is_empty()
    }
}

/// The stream of a decoupled step: its backend waits until each of the steps `readers` has a slot.
pub struct StepStream {
    pub limit: Arc<InflightLimit>,
    pub readers: Vec<usize>,
    pub ensemble: Arc<str>,
    /// That of the request.
    pub stream: Arc<dyn StreamLimit>,
}

impl StepStream {
    fn has_room(&self, steps: &[Slots]) -> bool {
        self.readers.iter().all(|step| steps[*step].has_room(self.limit.max))
    }

    fn wait(&self, cancel: &CancelToken) {
        let since = Instant::now();
        let mut steps = self.limit.steps.lock();
        while !self.has_room(&steps) && !cancel.is_cancelled() {
            if since.elapsed() >= MAX_WAIT {
                let name = &self.ensemble;
                tracing::error!(
                    "ensemble '{name}': no room for {MAX_WAIT:?} in a step after a decoupled one \
                     (max_inflight_requests); its response is passed on"
                );
                return;
            }
            steps = self.limit.room.wait_timeout(steps, LOOK).0;
        }
    }
}

impl StreamLimit for StepStream {
    fn admit(self: Arc<Self>, bytes: usize, wait: bool, cancel: &CancelToken) -> Result<Unread> {
        if wait {
            self.wait(cancel);
        } else if !self.has_room(&self.limit.steps.lock()) {
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

    fn backlog(&self) -> Backlog {
        self.stream.backlog()
    }

    fn stream(&self) -> u64 {
        self.stream.stream()
    }

    fn timeout(&self) -> Duration {
        self.stream.timeout()
    }
}
