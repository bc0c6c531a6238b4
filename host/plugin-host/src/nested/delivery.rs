//! Delivery: the thread that calls the handlers of a scope's nested requests, one after another.
//!
//! A sink must neither block nor call back, and a handler is code of a backend. So the sink only
//! adds the response to a queue. The thread starts with the scope's first request and ends with the
//! scope.

use super::stream::NestedStream;
use super::{
    CancelRequest, NestedRequest, QueuedRequest, ReachedVersion, ResponseEnd, ServerModels,
};
use crate::backend_facts::DEFAULT_STACK;
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use trtserver_base::error::{Code, Error, Result};
use trtserver_request::{InferResponse, ResponseSink, SingleResponse};

/// Calls a handler with a response; `last`: the final one.
pub trait ResponseHandler: Send + Sync {
    /// `version`: which has executed the request, below 0 when none has.
    fn deliver(&self, version: i64, response: Result<Option<InferResponse>>, last: bool);
}

/// Queue and thread that pass the responses to a scope's nested requests to their handlers.
#[derive(Default)]
pub struct NestedDelivery {
    shared: Arc<DeliveryQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct DeliveryQueue {
    state: Mutex<DeliveryState>,
    changed: Condvar,
}

#[derive(Default)]
struct DeliveryState {
    responses: VecDeque<QueuedResponse>,
    /// Requests whose last response was not delivered.
    open: HashMap<u64, OpenDelivery>,
    next: u64,
    closed: bool,
}

struct OpenDelivery {
    handler: Arc<dyn ResponseHandler>,
    version: ReachedVersion,
    /// `None` while it is submitted.
    queued: Option<QueuedRequest>,
}

struct QueuedResponse {
    of: u64,
    result: Result<Option<InferResponse>>,
    last: bool,
}

/// A response, and whom it goes to.
struct NextDelivery {
    handler: Arc<dyn ResponseHandler>,
    version: i64,
    /// What the request held; set with the last response.
    hold: Option<Box<dyn Any + Send>>,
    response: QueuedResponse,
}

impl NestedDelivery {
    /// Sends a request; `handler` receives its responses. Returns what cancels it.
    ///
    /// # Errors
    /// The request was not queued; the handler receives nothing. Or the scope is closed.
    pub fn infer(
        &self,
        label: &str,
        server: &dyn ServerModels,
        request: NestedRequest,
        handler: Arc<dyn ResponseHandler>,
    ) -> Result<CancelRequest> {
        let version = ReachedVersion::default();
        let of = self.begin(label, handler, &version)?;
        let make_sink = |decoupled: bool| ResponseEnd {
            sink: NestedSink {
                shared: Arc::clone(&self.shared),
                of,
                single: (!decoupled).then(SingleResponse::default),
            }
            .into(),
            stream: decoupled.then(|| NestedStream::new() as _),
            version: version.clone(),
        };
        match server.submit(request, &make_sink) {
            Ok(queued) => {
                let cancel = Arc::clone(&queued.cancel);
                let mut unused = Some(queued);
                if let Some(open) = self.shared.state.lock().open.get_mut(&of) {
                    open.queued = unused.take();
                }
                // Its last response was delivered already, or the scope was closed meanwhile.
                if unused.is_some() {
                    cancel();
                }
                Ok(cancel)
            }
            Err(e) => {
                let begun = self.shared.state.lock().open.remove(&of);
                match begun {
                    Some(_) => Err(e),
                    // The scope was closed meanwhile, which its handler was told.
                    None => Ok(Arc::new(|| {})),
                }
            }
        }
    }

    /// Enters a request, and starts the thread for the first one.
    fn begin(
        &self,
        label: &str,
        handler: Arc<dyn ResponseHandler>,
        version: &ReachedVersion,
    ) -> Result<u64> {
        let mut thread = self.thread.lock();
        let mut state = self.shared.state.lock();
        if state.closed {
            return Err(Error::unavailable(format!("{label} is being closed")));
        }
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new()
                .name("nested".to_owned())
                .stack_size(DEFAULT_STACK)
                .spawn(move || shared.run());
            let failed = |e| Error::unavailable(format!("{label}: cannot start a thread: {e}"));
            *thread = Some(started.map_err(failed)?);
        }
        state.next += 1;
        let of = state.next;
        state.open.insert(of, OpenDelivery { handler, version: version.clone(), queued: None });
        Ok(of)
    }

    /// Cancels what is open; each handler is called a last time with CANCELLED, and none after this
    /// returns.
    pub fn close(&self) {
        let (discarded, open) = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            let queued = state.open.values().filter_map(|open| open.queued.as_ref());
            let open: Vec<CancelRequest> =
                queued.map(|queued| Arc::clone(&queued.cancel)).collect();
            let ended: Vec<u64> = state.open.keys().copied().collect();
            let cancelled = ended.into_iter().map(|of| {
                let why = "the model or instance that sent the request is being closed";
                QueuedResponse { of, result: Err(Error::new(Code::Cancelled, why)), last: true }
            });
            (std::mem::replace(&mut state.responses, cancelled.collect()), open)
        };
        self.shared.changed.notify_all();
        drop(discarded);
        open.iter().for_each(|cancel| cancel());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|t| t.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for NestedDelivery {
    fn drop(&mut self) {
        self.close();
    }
}

impl DeliveryQueue {
    fn run(&self) {
        while let Some(NextDelivery { handler, version, hold, response }) = self.next() {
            let QueuedResponse { result, last, .. } = response;
            let delivered =
                catch_unwind(AssertUnwindSafe(|| handler.deliver(version, result, last)));
            if delivered.is_err() {
                tracing::error!("the handler of a nested request failed");
            }
            drop(hold);
        }
    }

    /// Waits for a response. `None` once the scope is closed and all were delivered.
    fn next(&self) -> Option<NextDelivery> {
        let mut state = self.state.lock();
        loop {
            let Some(response) = state.responses.pop_front() else {
                if state.closed {
                    return None;
                }
                self.changed.wait(&mut state);
                continue;
            };
            if response.last {
                if let Some(open) = state.open.remove(&response.of) {
                    let (handler, version) = (open.handler, open.version.get());
                    let hold = open.queued.map(|queued| queued.hold);
                    return Some(NextDelivery { handler, version, hold, response });
                }
            } else if let Some(open) = state.open.get(&response.of) {
                let (handler, version) = (Arc::clone(&open.handler), open.version.get());
                return Some(NextDelivery { handler, version, hold: None, response });
            }
            // The request of this response has ended. The response is dropped without the lock,
            // because it may be memory of a backend.
            drop(state);
            drop(response);
            state = self.state.lock();
        }
    }

    fn add(&self, response: QueuedResponse) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return drop(response);
        }
        state.responses.push_back(response);
        drop(state);
        self.changed.notify_one();
    }
}

struct NestedSink {
    shared: Arc<DeliveryQueue>,
    of: u64,
    /// `None` for a decoupled model.
    single: Option<SingleResponse>,
}

impl ResponseSink for NestedSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let of = self.of;
        match &mut self.single {
            None => {
                let last = last || response.is_err();
                self.shared.add(QueuedResponse { of, result: response, last });
            }
            Some(single) => {
                if let Some(result) = single.put(response, last) {
                    self.shared.add(QueuedResponse { of, result: result.map(Some), last: true });
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
