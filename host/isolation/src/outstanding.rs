//! The requests outstanding in a child: sent over one work connection and without a final response.

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_base::error::Error;
use trtserver_request::{InferRequest, Responder};

/// Requests that were sent over one work connection and have no final response yet.
pub struct OutstandingRequests(Mutex<OutstandingState>);

struct OutstandingState {
    by_key: HashMap<u64, InferRequest>,
    next_key: u64,
    /// Batches that the child may not have taken yet, in the order of sending.
    ahead: VecDeque<SentBatch>,
    /// Nothing is sent any more.
    closed: bool,
    /// When the child last responded, or got a request while none was outstanding.
    last_activity: Instant,
}

/// A batch that was sent.
struct SentBatch {
    id: u64,
    keys: Range<u64>,
    /// The child has taken it when its position has reached this.
    position: u64,
}

/// Batches by number that the child has not taken.
pub type UntakenBatches = Vec<(u64, Vec<InferRequest>)>;

/// Requests that were added together: their responders and keys.
pub type AddedRequests = SmallVec<[(Arc<Responder>, u64); 8]>;

/// The responder that a response is delivered to.
pub struct ResponseTarget {
    pub responder: Arc<Responder>,
    /// Keeps the inputs until the final response was passed on.
    _request: Option<InferRequest>,
}

impl OutstandingRequests {
    pub fn new() -> Self {
        Self(Mutex::new(OutstandingState {
            by_key: HashMap::new(),
            next_key: 1,
            ahead: VecDeque::new(),
            closed: false,
            last_activity: Instant::now(),
        }))
    }

    /// Nothing is sent any more.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Moves `requests` here, each with a new key, after calling `encode`. `None` if closed;
    /// `requests` are unchanged then.
    pub fn add(
        &self,
        requests: &mut Vec<InferRequest>,
        mut encode: impl FnMut(u64, &InferRequest),
    ) -> Option<AddedRequests> {
        let mut added = AddedRequests::new();
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        if state.by_key.is_empty() {
            state.last_activity = Instant::now();
        }
        for request in requests.drain(..) {
            let key = state.next_key;
            state.next_key += 1;
            // Under the lock: `close` happens before the loans of a dead child are reset, and no
            // loan is taken after it.
            encode(key, &request);
            added.push((Arc::clone(&request.responder), key));
            state.by_key.insert(key, request);
        }
        Some(added)
    }

    /// Batch `id` of `added` requests was sent. The child has taken batches up to position `taken`.
    pub fn sent(&self, id: u64, added: &AddedRequests, position: u64, taken: u64) {
        let Some((_, first)) = added.first() else { return };
        let mut state = self.lock();
        while state.ahead.front().is_some_and(|sent| sent.position <= taken) {
            state.ahead.pop_front();
        }
        let keys = *first..*first + added.len() as u64;
        state.ahead.push_back(SentBatch { id, keys, position });
    }

    /// Removes the batches that the child, which has ended, has not taken: it has taken batches up
    /// to position `taken`. Of a child that was `late`, the request that it was late with stays,
    /// also if it has taken none.
    pub fn untaken(&self, taken: u64, late: bool) -> UntakenBatches {
        let mut state = self.lock();
        let OutstandingState { by_key, ahead, .. } = &mut *state;
        let untaken = ahead.drain(..).filter(|sent| sent.position > taken);
        let batches = untaken.map(|sent| {
            (sent.id, sent.keys.filter_map(|key| by_key.remove_entry(&key)).collect::<Vec<_>>())
        });
        let mut batches = batches.filter(|(_, requests)| !requests.is_empty()).collect::<Vec<_>>();
        if late && by_key.is_empty() && !batches.is_empty() {
            by_key.extend(batches.remove(0).1);
        }
        let requests = |all: Vec<(u64, InferRequest)>| all.into_iter().map(|(_, r)| r).collect();
        batches.into_iter().map(|(id, all)| (id, requests(all))).collect()
    }

    /// Moves `added` requests, which could not be sent, back to `requests`. A request that failed
    /// meanwhile is not returned. `unshare` returns the loans that `encode` has taken; those of a
    /// dead child are reset by others.
    pub fn take_back(
        &self,
        added: &AddedRequests,
        requests: &mut Vec<InferRequest>,
        unshare: impl FnOnce(),
    ) {
        let mut state = self.lock();
        if !state.closed {
            unshare();
        }
        requests.extend(added.iter().filter_map(|(_, key)| state.by_key.remove(key)));
    }

    pub fn contains(&self, key: u64) -> bool {
        self.lock().by_key.contains_key(&key)
    }

    pub fn is_empty(&self) -> bool {
        self.lock().by_key.is_empty()
    }

    /// Finds the request of a response, and removes it if the response is the last; `None` if it is
    /// not outstanding.
    pub fn target(&self, key: u64, last: bool) -> Option<ResponseTarget> {
        let mut state = self.lock();
        state.last_activity = Instant::now();
        if last {
            let request = state.by_key.remove(&key)?;
            return Some(ResponseTarget {
                responder: Arc::clone(&request.responder),
                _request: Some(request),
            });
        }
        let responder = Arc::clone(&state.by_key.get(&key)?.responder);
        Some(ResponseTarget { responder, _request: None })
    }

    /// Time left until the response deadline; `None` when it has passed.
    pub fn time_left(&self, limit: Duration) -> Option<Duration> {
        let state = self.lock();
        if state.by_key.is_empty() {
            return Some(limit);
        }
        let left = limit.checked_sub(state.last_activity.elapsed()).filter(|left| !left.is_zero());
        // A child that waits for a client is not stuck. It counts the same unread responses as this
        // process, but earlier.
        let waits = |request: &InferRequest| {
            let context = request.context();
            context.stream.as_ref().is_some_and(|stream| {
                let backlog = stream.backlog();
                context.waits && backlog.bytes >= backlog.limit / 2
            })
        };
        left.or_else(|| state.by_key.values().any(waits).then_some(limit))
    }

    /// The last activity of the child, if requests are outstanding.
    pub fn inactive_since(&self) -> Option<Instant> {
        let state = self.lock();
        (!state.by_key.is_empty()).then_some(state.last_activity)
    }

    /// No request is added any more.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Fails all outstanding requests.
    pub fn fail(&self, error: &Error) {
        let outstanding = std::mem::take(&mut self.lock().by_key);
        for request in outstanding.into_values() {
            let _ = request.responder.finish(Err(error.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutstandingState> {
        self.0.lock()
    }
}
