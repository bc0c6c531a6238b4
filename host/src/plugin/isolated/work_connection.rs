//! The work connection of an instance: sends batches and keeps the outstanding requests.

use super::messages::{Cancel, ExecuteBatch, Request, control_request};
use super::process::Process;
use super::responses::ResponseReader;
use super::wire::Sender;
use crate::error::{Code, Error, Result};
use crate::request::{CancelObserver, InferRequest, Responder};
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The host's sending side of a work connection, and the requests outstanding on it.
pub struct WorkConnection {
    sender: Sender,
    pub process: Arc<Process>,
    ordinal: u32,
    state: Mutex<State>,
    /// The receiving side, if the instance's own thread reads responses; else a thread of its own has it.
    pub reader: Mutex<Option<ResponseReader>>,
    me: Weak<WorkConnection>,
}

struct State {
    /// By key.
    outstanding: HashMap<u64, InferRequest>,
    next_key: u64,
    /// Nothing is sent any more.
    closed: bool,
    /// When the child last responded, or got a request while none was outstanding.
    last_activity: Instant,
}

/// The responder that a response is delivered to.
pub struct Target {
    pub responder: Arc<Responder>,
    /// Keeps the inputs until the final response was passed on.
    _request: Option<InferRequest>,
}

impl WorkConnection {
    pub fn new(
        sender: Sender,
        process: Arc<Process>,
        ordinal: u32,
        reader: Option<ResponseReader>,
    ) -> Arc<Self> {
        let state = State {
            outstanding: HashMap::new(),
            next_key: 1,
            closed: false,
            last_activity: Instant::now(),
        };
        let (state, reader) = (Mutex::new(state), Mutex::new(reader));
        Arc::new_cyclic(|me| Self { sender, process, ordinal, state, reader, me: me.clone() })
    }

    /// Sends the requests as one batch of the messages that `encode` makes. Returns false if the child is gone or about
    /// to be killed; `requests` are unchanged then.
    ///
    /// # Errors
    /// The message is too large. `requests` are unchanged; the caller must remove the references that `encode` added.
    pub fn send(
        &self,
        batch: &mut ExecuteBatch,
        requests: &mut Vec<InferRequest>,
        mut encode: impl FnMut(u64, &InferRequest) -> Request,
    ) -> Result<bool> {
        let mut sent: SmallVec<[(Arc<Responder>, u64); 8]> = SmallVec::new();
        let mut state = self.lock();
        if state.closed {
            return Ok(false);
        }
        if state.outstanding.is_empty() {
            state.last_activity = Instant::now();
        }
        batch.requests.clear();
        for request in requests.drain(..) {
            let key = state.next_key;
            state.next_key += 1;
            // Under the lock: `close` happens before the references of a dead child are reset, and none is added after it.
            batch.requests.push(encode(key, &request));
            sent.push((Arc::clone(&request.responder), key));
            state.outstanding.insert(key, request);
        }
        drop(state);
        if let Err(e) = self.sender.send(batch) {
            // A partial message is not executed. Requests that are no longer outstanding were failed by the supervisor.
            let mut state = self.lock();
            requests.extend(sent.iter().filter_map(|(_, key)| state.outstanding.remove(key)));
            drop(state);
            if e.code == Code::InvalidArg {
                return Err(e);
            }
            // If it is alive, it has not read for the whole write timeout.
            self.process.connection_lost(&format!("stopped reading requests ({e})"));
            return Ok(requests.is_empty());
        }
        for (responder, key) in sent {
            if responder.cancel_token.notify(self.me.clone(), key) {
                self.cancelled(key);
            }
        }
        Ok(true)
    }

    /// Finds the request of a response, and removes it if the response is the last; `None` if it is not outstanding.
    pub fn target(&self, key: u64, last: bool) -> Option<Target> {
        let mut state = self.lock();
        state.last_activity = Instant::now();
        if last {
            let request = state.outstanding.remove(&key)?;
            return Some(Target {
                responder: Arc::clone(&request.responder),
                _request: Some(request),
            });
        }
        let responder = Arc::clone(&state.outstanding.get(&key)?.responder);
        Some(Target { responder, _request: None })
    }

    /// Time left until the response deadline; `None` when it has passed.
    pub fn time_left(&self, limit: Duration) -> Option<Duration> {
        let state = self.lock();
        if state.outstanding.is_empty() {
            return Some(limit);
        }
        limit.checked_sub(state.last_activity.elapsed()).filter(|left| !left.is_zero())
    }

    /// The last activity of the child, if requests are outstanding.
    pub fn inactive_since(&self) -> Option<Instant> {
        let state = self.lock();
        (!state.outstanding.is_empty()).then_some(state.last_activity)
    }

    /// Whether requests are outstanding.
    pub fn has_outstanding(&self) -> bool {
        !self.lock().outstanding.is_empty()
    }

    /// Sends nothing any more. Responses that were received already can still be read.
    pub fn close(&self) {
        self.lock().closed = true;
        self.sender.shut_down();
    }

    /// Fails all outstanding requests.
    pub fn fail(&self, error: &Error) {
        let outstanding = std::mem::take(&mut self.lock().outstanding);
        for request in outstanding.into_values() {
            let _ = request.responder.finish(Err(error.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl CancelObserver for WorkConnection {
    /// Notifies the child of a cancelled request, if that does not block.
    fn cancelled(&self, key: u64) {
        if self.lock().outstanding.contains_key(&key) {
            let cancel = Cancel { ordinal: self.ordinal, key };
            self.process.try_notify(control_request::Kind::Cancel(cancel));
        }
    }
}
