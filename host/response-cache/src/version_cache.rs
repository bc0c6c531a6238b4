//! The cache of one open version: requests pass it on their way to the scheduler.

use crate::benefit::{CacheBenefit, CacheState};
use crate::cached_response::{CachedResponse, ResponseParts};
use crate::flight::Flight;
use crate::key::{BuildKeyHasher, RequestKey, request_key};
use crate::landing::{Follower, Landing};
use crate::shared_result::{HitTimes, answer_hit};
use crate::{RequestExecutor, ResponseStore, cacheable};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use trtserver_base::clock::now_ns;
use trtserver_base::ledger::{LedgerHolder, LedgerOwner, MemoryTag};
use trtserver_base::stats::FailureReason;
use trtserver_request::{CancelObserver, InferRequest, InputTensor, Responder};

type Flights = HashMap<RequestKey, Arc<Flight<Follower>>, BuildKeyHasher>;

/// Looks requests to one open version up. The last reference removes the version's entries.
pub struct VersionCache {
    store: Arc<ResponseStore>,
    /// Number of the version in the store.
    opened: u64,
    /// As log lines name it.
    subject: String,
    tag: MemoryTag,
    /// Executions in flight by key.
    flights: Mutex<Flights>,
    /// Flights that have ended: tells a look-up that its miss may be out of date.
    ended: AtomicU64,
    pub(crate) benefit: CacheBenefit,
    /// Requests that were answered by the execution of an equal one.
    shared: AtomicU64,
    warned: AtomicBool,
}

/// Hashing more bytes takes a tenth of a millisecond and longer, which is too long for a network
/// thread.
const MAX_INLINE: usize = 1 << 20;

/// What statistics show beside hits and misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheReport {
    pub state: CacheState,
    pub shared: u64,
    pub switched_off: u64,
    /// Requests that were not looked up because it was off.
    pub passed: u64,
}

impl VersionCache {
    /// For version `number` of `model`, whose memory is entered under `owner`.
    pub fn new(store: &Arc<ResponseStore>, model: &str, number: i64, owner: LedgerOwner) -> Self {
        Self {
            store: Arc::clone(store),
            opened: store.next_version(),
            subject: format!("model '{model}' version {number}"),
            tag: owner.tag(LedgerHolder::ResponseCache),
            flights: Mutex::default(),
            ended: AtomicU64::new(0),
            benefit: CacheBenefit::default(),
            shared: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        }
    }

    /// A request with so many bytes of inputs is to be submitted on another thread than that of a
    /// connection.
    pub fn takes_long(&self, bytes: usize) -> bool {
        bytes > MAX_INLINE && !self.benefit.is_off()
    }

    /// Answers a checked request, or has `executor` execute it.
    pub fn submit(self: &Arc<Self>, mut request: InferRequest, executor: &dyn RequestExecutor) {
        if !self.benefit.is_on(now_ns) || !cacheable::is_cacheable(&request) {
            return executor.execute(request);
        }
        let begin = now_ns();
        // The bytes that are hashed are those that are executed.
        if let Err(e) = request.inputs.iter_mut().try_for_each(InputTensor::unshare) {
            let _ = request.responder.fail(e, FailureReason::Other);
            return;
        }
        let Some(key) = request_key(self.store.seed(), self.opened, &request) else {
            return executor.execute(request);
        };
        let ended = self.ended.load(Ordering::Acquire);
        let entry = self.store.get(key, begin);
        let now = now_ns();
        let times = HitTimes { lookup_ns: now.saturating_sub(begin), since_ns: now };
        let bytes = request.inputs.iter().map(|input| input.data.len()).sum();
        if self.benefit.looked_up(times.lookup_ns, bytes, now) {
            tracing::warn!(
                "{}: its response cache is switched off for a while, because look-ups take longer than \
                 hits save",
                self.subject
            );
        }
        match entry {
            Some(entry) => self.hit(&request, &entry, times, executor),
            None => self.miss(request, key, ended, times, executor),
        }
    }

    fn hit(
        &self,
        request: &InferRequest,
        entry: &CachedResponse,
        times: HitTimes,
        executor: &dyn RequestExecutor,
    ) {
        self.benefit.hit();
        request.responder.queued(times.since_ns);
        executor.order_response(&request.responder);
        answer_hit(&request.responder, entry.response(), times, times.since_ns);
    }

    /// Follows an equal request, or is executed. `ended`: flights that had ended before the look-up.
    fn miss(
        self: &Arc<Self>,
        request: InferRequest,
        key: RequestKey,
        ended: u64,
        times: HitTimes,
        executor: &dyn RequestExecutor,
    ) {
        let may_follow = cacheable::may_follow(&request, executor.is_ordered());
        let mut flights = self.flights.lock();
        let flight = match flights.get(&key) {
            Some(flight) if may_follow && flight.priority == request.priority => {
                let flight = Arc::clone(flight);
                match follow(&flight, request, times, executor) {
                    Ok((ticket, responder)) => {
                        // The sink that is told of a cancellation may submit another request, which
                        // takes this lock.
                        drop(flights);
                        // A cancellation before it joined did not find it.
                        if responder.cancel_token.is_cancelled() {
                            flight.cancelled(ticket);
                        }
                        return;
                    }
                    // It ended, and is about to be removed.
                    Err(request) => {
                        let flight = Arc::new(Flight::new(request.priority));
                        flights.insert(key, Arc::clone(&flight));
                        drop(flights);
                        let landing = Landing::new(self, key, Some(flight), times.lookup_ns);
                        return landing.execute(*request, executor);
                    }
                }
            }
            Some(_) => None,
            None if self.ended.load(Ordering::Acquire) != ended
                && let Some(entry) = self.store.get(key, times.since_ns) =>
            {
                drop(flights);
                return self.hit(&request, &entry, times, executor);
            }
            None => {
                let flight = Arc::new(Flight::new(request.priority));
                flights.insert(key, Arc::clone(&flight));
                Some(flight)
            }
        };
        drop(flights);
        Landing::new(self, key, flight, times.lookup_ns).execute(request, executor);
    }

    /// A request was answered by the execution of an equal one.
    pub(crate) fn shared(&self) {
        self.shared.fetch_add(1, Ordering::Relaxed);
        self.benefit.hit();
    }

    /// No further request follows `flight`.
    pub(crate) fn close_flight(&self, key: RequestKey, flight: &Arc<Flight<Follower>>) {
        let mut flights = self.flights.lock();
        if flights.get(&key).is_some_and(|open| Arc::ptr_eq(open, flight)) {
            flights.remove(&key);
        }
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// The response fits into the store.
    pub(crate) fn admits(&self, parts: &ResponseParts) -> bool {
        self.store.admits(parts.weight()).is_ok()
    }

    /// Stores a copy of a response.
    pub(crate) fn insert(&self, key: RequestKey, parts: &ResponseParts, now_ns: u64) {
        let failure = match self.store.admits(parts.weight()) {
            Err(too_large) => format!(
                "the response takes {} bytes, and at most {} fit into a cache of this size \
                 (--cache-config)",
                too_large.bytes, too_large.largest
            ),
            Ok(()) => {
                let expires_ns = self.store.expiry(now_ns);
                match CachedResponse::copy(parts, self.opened, expires_ns, self.tag) {
                    Some(entry) => return self.store.insert(key, entry),
                    None => "there is no memory for a copy of the response".to_owned(),
                }
            }
        };
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "Failed to insert key [{:032x}] into response cache: {}: {failure}; further failures of \
                 this model are not logged",
                key.0,
                self.subject
            );
        }
    }

    /// Requests that wait for the execution of an equal one.
    pub fn waiting(&self) -> usize {
        self.flights.lock().values().map(|flight| flight.followers()).sum()
    }

    pub fn report(&self) -> CacheReport {
        CacheReport {
            state: self.benefit.state(),
            shared: self.shared.load(Ordering::Relaxed),
            switched_off: self.benefit.switched_off(),
            passed: self.benefit.passed(),
        }
    }
}

/// Lets `request` wait for the result of `flight`; returns its ticket there, or the request if the
/// flight has ended.
fn follow(
    flight: &Arc<Flight<Follower>>,
    request: InferRequest,
    times: HitTimes,
    executor: &dyn RequestExecutor,
) -> Result<(u64, Arc<Responder>), Box<InferRequest>> {
    let responder = Arc::clone(&request.responder);
    responder.queued(times.since_ns);
    let ticket = flight.ticket();
    let observer: Weak<dyn CancelObserver> =
        Arc::downgrade(&(Arc::clone(flight) as Arc<dyn CancelObserver>));
    // Before it joins: once it has, another thread may put it into a queue, which is then the
    // observer.
    let _ = responder.cancel_token.notify(observer, ticket);
    let follower = Follower { request, executor: executor.retained(), times };
    flight.join(ticket, follower).map_err(|follower| Box::new(follower.request))?;
    Ok((ticket, responder))
}

impl Drop for VersionCache {
    fn drop(&mut self) {
        self.store.remove_version(self.opened);
    }
}

#[cfg(test)]
#[path = "version_cache_tests.rs"]
mod tests;
