//! The access log's view of a request: what is known when its head has arrived, what its inference
//! tells, and how its response ends.
//!
//! Without `--access-log` none of this exists: a request then has no [`AccessEntry`].

use crate::grpc::body::{MESSAGE, STATUS};
use crate::grpc::call_kind::CallKind;
use crate::request_body::RequestBody;
use crate::trace_context::read_trace_context;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use trtserver_base::clock::now_ns;
use trtserver_base::request_observer::{InferenceEnd, RequestObserver};
use trtserver_request_trace::TraceContext;
use trtserver_telemetry::access_log::AccessLog;
use trtserver_telemetry::access_record::{AccessRecord, BodyBytes, ExecutionFacts, InferenceFacts};

/// The access log for the requests of one connection.
#[derive(Clone)]
pub struct ConnectionAccess {
    pub log: Arc<AccessLog>,
    pub wire: &'static str,
    /// The client's address.
    pub peer: Arc<str>,
}

/// A request whose end is logged: when this is dropped.
pub struct AccessEntry {
    call: Arc<AccessCall>,
    status: Option<u16>,
    error: Option<String>,
    sent: u64,
    /// The client has got all of the response, as far as the server can tell.
    complete: bool,
}

/// What the parts of a request tell of it.
pub struct AccessCall {
    access: ConnectionAccess,
    time: SystemTime,
    received_ns: u64,
    method: Method,
    uri: Uri,
    request_id: Option<HeaderValue>,
    trace: Option<Box<TraceContext>>,
    /// Each of its inferences has a line of its own.
    is_stream: bool,
    caller: OnceLock<Arc<str>>,
    received: AtomicU64,
    outcome: Mutex<CallOutcome>,
}

/// What was served, and why it failed.
#[derive(Default)]
struct CallOutcome {
    inference: Option<InferenceFacts>,
    error: Option<String>,
}

impl AccessEntry {
    /// The head of a request has arrived.
    pub fn begin<B>(
        access: &ConnectionAccess,
        request: &Request<B>,
        request_id: Option<HeaderValue>,
    ) -> Self {
        let kind = CallKind::from_path(request.uri().path());
        let call = Arc::new(AccessCall {
            access: access.clone(),
            time: SystemTime::now(),
            received_ns: now_ns(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            request_id,
            trace: read_trace_context(request.headers()),
            is_stream: matches!(
                kind,
                CallKind::StreamV1 | CallKind::Stream2018 | CallKind::StreamV2
            ),
            caller: OnceLock::new(),
            received: AtomicU64::new(0),
            outcome: Mutex::default(),
        });
        Self { call, status: None, error: None, sent: 0, complete: false }
    }

    pub fn call(&self) -> &Arc<AccessCall> {
        &self.call
    }

    /// The head of the response.
    pub fn responded<B>(&mut self, response: &Response<B>) {
        if self.call.access.wire == "http" {
            self.status = Some(response.status().as_u16());
            // Its body is not sent.
            self.complete = self.call.method == Method::HEAD;
        }
        self.trailers(response.headers());
    }

    /// Bytes of the body of the response.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Trailers, or headers that stand for them: the status of a gRPC call.
    pub fn trailers(&mut self, headers: &HeaderMap) {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if let Some(code) = text(STATUS) {
            self.status = code.parse().ok();
            self.complete = true;
        }
        if let Some(message) = text(MESSAGE).filter(|message| !message.is_empty()) {
            self.error = Some(percent_decode_str(message).decode_utf8_lossy().into_owned());
        }
    }

    /// The whole body was taken from the response.
    pub fn completed(&mut self) {
        self.complete = true;
    }
}

impl Drop for AccessEntry {
    fn drop(&mut self) {
        let CallOutcome { inference, error } = std::mem::take(&mut *self.call.outcome.lock());
        let received = self.call.received.load(Relaxed);
        self.call.access.log.record(AccessRecord {
            inference,
            status: self.status,
            disconnected: !self.complete,
            bytes: Some(BodyBytes { received, sent: self.sent }),
            total_us: now_ns().saturating_sub(self.call.received_ns) / 1000,
            error: self.error.take().or(error),
            ..self.call.record()
        });
    }
}

impl AccessCall {
    /// Bytes of the body of the request.
    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
    }

    /// A record without what an inference or the end of the response tells.
    fn record(&self) -> AccessRecord {
        AccessRecord {
            time: self.time,
            wire: self.access.wire,
            method: self.method.clone(),
            uri: self.uri.clone(),
            peer: Arc::clone(&self.access.peer),
            caller: self.caller.get().cloned(),
            request_id: self.request_id.clone(),
            trace_id: self.trace.as_ref().map(|trace| trace.trace_id),
            inference: None,
            status: None,
            disconnected: false,
            bytes: None,
            total_us: 0,
            error: None,
        }
    }
}

impl RequestObserver for AccessCall {
    fn caller_named(&self, name: &Arc<str>) {
        // The first name counts: a request is authenticated once.
        let _ = self.caller.set(Arc::clone(name));
    }

    fn request_refused(&self, error: &str) {
        if !self.is_stream {
            self.outcome.lock().error = Some(error.to_owned());
            return;
        }
        self.access.log.record(AccessRecord {
            time: SystemTime::now(),
            error: Some(error.to_owned()),
            ..self.record()
        });
    }

    fn inference_ended(&self, end: &InferenceEnd<'_>) {
        let facts = InferenceFacts {
            id: end.id.to_owned(),
            model: end.model.to_owned(),
            version: end.version,
            batch: end.batch,
            execution: end.execution.map(|execution| ExecutionFacts {
                rows: execution.rows,
                queue_us: execution.queue_ns / 1000,
                compute_us: execution.compute_ns / 1000,
            }),
        };
        let error = end.error.map(ToString::to_string);
        if !self.is_stream {
            *self.outcome.lock() = CallOutcome { inference: Some(facts), error };
            return;
        }
        let arrived = SystemTime::now().checked_sub(Duration::from_nanos(end.total_ns));
        self.access.log.record(AccessRecord {
            time: arrived.unwrap_or(self.time),
            inference: Some(facts),
            total_us: end.total_ns / 1000,
            error,
            ..self.record()
        });
    }
}

impl fmt::Debug for AccessCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessCall").field("uri", &self.uri).finish_non_exhaustive()
    }
}

/// The body of a logged request counts its bytes.
pub fn count_received(body: &mut RequestBody, entry: Option<&AccessEntry>) {
    if let Some(entry) = entry {
        body.count_for_log(Arc::clone(entry.call()));
    }
}
