//! The end of a look-up that missed: the response is stored and given to those who wait for it, or
//! another request is executed in place of the one that failed.

use crate::cached_response::ResponseParts;
use crate::flight::{Flight, Handover};
use crate::flight_sink::FlightSink;
use crate::key::RequestKey;
use crate::separate_execution;
use crate::shared_result::{HitTimes, answer_hit};
use crate::version_cache::VersionCache;
use crate::{RequestExecutor, cacheable};
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Error};
use trtserver_base::stats::FailureReason;
use trtserver_request::{CancelObserver, InferRequest};

/// A request that waits for the result of an equal one.
pub struct Follower {
    pub request: InferRequest,
    pub executor: Box<dyn RequestExecutor>,
    pub times: HitTimes,
}

impl CancelObserver for Flight<Follower> {
    fn cancelled(&self, ticket: u64) {
        if let Some(Follower { request, .. }) = self.leave(ticket) {
            let error = Error::new(Code::Cancelled, "request was cancelled");
            let _ = request.responder.fail(error, FailureReason::Canceled);
        }
    }
}

/// What is owed to the cache by a request that it did not have.
pub struct Landing {
    cache: Arc<VersionCache>,
    key: RequestKey,
    /// `None` if it shares its execution with no one.
    flight: Option<Arc<Flight<Follower>>>,
    pub lookup_ns: u64,
}

impl Landing {
    pub fn new(
        cache: &Arc<VersionCache>,
        key: RequestKey,
        flight: Option<Arc<Flight<Follower>>>,
        lookup_ns: u64,
    ) -> Self {
        Self { cache: Arc::clone(cache), key, flight, lookup_ns }
    }

    /// Executes `request`, whose result lands here.
    pub fn execute(self, request: InferRequest, executor: &dyn RequestExecutor) {
        if cacheable::has_destinations(&request) {
            return separate_execution::execute(self, request, executor);
        }
        let responder = Arc::downgrade(&request.responder);
        request.responder.wrap_sink(|sink| FlightSink::new(self, responder, sink).into());
        executor.execute(request);
    }

    /// To be called before the client has the response: a request that is sent after that does not
    /// follow this one, unless it would find the response in the store.
    pub fn close_unless_stored(&self, parts: Option<&ResponseParts>) {
        if !parts.is_some_and(|parts| self.cache.admits(parts))
            && let Some(flight) = &self.flight
        {
            self.cache.close_flight(self.key, flight);
        }
    }

    /// The request was executed, in `execution_ns`. Returns how long the insertion took.
    pub fn succeed(mut self, parts: &ResponseParts, execution_ns: Option<u64>) -> u64 {
        let begin = now_ns();
        if let Some(ns) = execution_ns {
            self.cache.benefit.executed(ns);
        }
        self.cache.insert(self.key, parts, begin);
        if let Some(flight) = self.flight.take() {
            self.cache.close_flight(self.key, &flight);
            for follower in flight.land() {
                self.cache.shared();
                let response = parts.response();
                answer_hit(&follower.request.responder, response, follower.times, now_ns());
            }
        }
        let ns = now_ns().saturating_sub(begin);
        let bytes = parts.outputs.iter().map(|output| output.data.len()).sum();
        self.cache.benefit.inserted(ns, bytes);
        ns
    }

    /// The request was executed without a response that can be stored. Those who wait are executed
    /// one after another.
    pub fn give_up(mut self) {
        self.hand_over();
    }

    /// The request failed. An error of its execution is also that of the requests that wait; if it
    /// was not executed, another one is.
    pub fn fail(mut self, error: &Error, executed: bool) {
        if !executed || error.code == Code::Cancelled {
            return self.hand_over();
        }
        let Some(flight) = self.flight.take() else { return };
        self.cache.close_flight(self.key, &flight);
        for Follower { request, .. } in flight.land() {
            let _ = request.responder.fail(error.clone(), FailureReason::Backend);
        }
    }

    fn hand_over(&mut self) {
        let Some(flight) = self.flight.take() else { return };
        let mut next = flight.leader_ended();
        loop {
            match next {
                Handover::Later => return,
                Handover::Ended => return self.cache.close_flight(self.key, &flight),
                Handover::Lead(Follower { request, executor, times }) => {
                    let flight = Some(Arc::clone(&flight));
                    Self::new(&self.cache, self.key, flight, times.lookup_ns)
                        .execute(request, &*executor);
                }
            }
            next = flight.handed_over();
        }
    }
}

impl Drop for Landing {
    /// The request was lost, or has ended before it was submitted.
    fn drop(&mut self) {
        self.hand_over();
    }
}
