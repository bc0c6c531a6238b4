//! Nested requests: the resources of an execution are free while it waits for other models.
//!
//! A request that the executing thread sends belongs to its batch. One that another thread of the
//! backend sends, or another process, belongs to a model: all executions of that model give up their
//! resources, since it is not known which of them waits for the response. The first of them that has
//! its resources again lets the response pass: waiting for all would be to hold some while waiting
//! for others.

use super::state::GrantId;
use super::{RateLimiter, current_execution};
use parking_lot::Mutex;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Result;
use trtserver_request::{InferResponse, ResponseSink, Sink};

/// The executions that have given up their resources for one nested request.
pub struct LentResources {
    limiter: Arc<RateLimiter>,
    grants: Vec<GrantId>,
}

impl RateLimiter {
    /// Frees the resources of the executions that may wait for a nested request of `model`, the
    /// model version that sends it. `None`: there are none.
    pub fn lend(self: &Arc<Self>, model: Option<(&str, i64)>) -> Option<LentResources> {
        let now = now_ns();
        let own = current_execution().filter(|grant| Arc::ptr_eq(grant.limiter(), self));
        let mut locked = self.locked.lock();
        let grants = match (own, model) {
            (Some(grant), _) => vec![grant.id],
            (None, Some((name, version))) => locked.state.executions_of(name, version),
            (None, None) => Vec::new(),
        };
        let lent = |grant: &GrantId| locked.state.begin_nested(*grant, now);
        let grants: Vec<_> = grants.into_iter().filter(lent).collect();
        let wakes = locked.take_wakes();
        drop(locked);
        wakes.wake();
        (!grants.is_empty()).then(|| LentResources { limiter: Arc::clone(self), grants })
    }
}

impl LentResources {
    /// `sink`, with its final response delayed until an execution has its resources again.
    pub fn wrap(self, sink: Sink) -> Sink {
        DelayedSink { sink: Some(sink), lent: Some(self) }.into()
    }

    /// Calls `resume` once an execution has its resources again, at once if one has.
    fn take_back(mut self, resume: impl FnOnce() + Send + 'static) {
        let grants = std::mem::take(&mut self.grants);
        let now = now_ns();
        let mut locked = self.limiter.locked.lock();
        let waiting: Vec<GrantId> =
            grants.iter().copied().filter(|grant| !locked.state.end_nested(*grant, now)).collect();
        // Those that are granted by the steps after their own are in the events.
        let delayed = waiting.len() == grants.len();
        if delayed {
            let resume = Arc::new(Mutex::new(Some(resume)));
            for grant in waiting {
                let resume = Arc::clone(&resume);
                let first = move || {
                    let resume = resume.lock().take();
                    if let Some(resume) = resume {
                        resume();
                    }
                };
                locked.resuming.entry(grant).or_default().push(Box::new(first));
            }
            let wakes = locked.take_wakes();
            drop(locked);
            return wakes.wake();
        }
        let wakes = locked.take_wakes();
        drop(locked);
        wakes.wake();
        resume();
    }
}

impl Drop for LentResources {
    /// A request that was refused, or whose sink is dropped without a final response.
    fn drop(&mut self) {
        if !self.grants.is_empty() {
            let grants = std::mem::take(&mut self.grants);
            LentResources { limiter: Arc::clone(&self.limiter), grants }.take_back(|| {});
        }
    }
}

struct DelayedSink {
    sink: Option<Sink>,
    lent: Option<LentResources>,
}

impl ResponseSink for DelayedSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        // An error is final.
        if !last && response.is_ok() {
            if let Some(sink) = &mut self.sink {
                sink.send(response, false);
            }
            return;
        }
        let Some(mut sink) = self.sink.take() else { return };
        match self.lent.take() {
            Some(lent) => lent.take_back(move || sink.send(response, true)),
            None => sink.send(response, true),
        }
    }
}

#[cfg(test)]
#[path = "nested_tests.rs"]
mod tests;
