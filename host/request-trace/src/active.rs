//! A trace in progress: what is recorded while a request is served.

use crate::activity::{Activity, TensorActivity};
use crate::context::TraceContext;
use crate::ids::SpanPart;
use crate::request_trace::{
    BatchFacts, MAX_ID, MAX_TENSOR_BYTES, MAX_TIMESTAMPS, RequestSpan, RequestTrace, TensorRecord,
    TraceFailure, TraceWire,
};
use crate::sampling::SampledBy;
use crate::tensor_text::{dims_text, elements_text};
use crate::tracer::Tracer;
use parking_lot::Mutex;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;
use trtserver_base::stats::BatchExecution;

/// Most spans of one trace; later ones are dropped.
const MAX_SPANS: usize = 1024;
/// Longest name that a backend gives a point in time.
const MAX_ACTIVITY: usize = 256;
/// Longest text of an error.
const MAX_MESSAGE: usize = 1024;

/// One traced request, referenced by everything that records its times. The trace is complete when
/// the last reference is dropped.
pub struct ActiveTrace {
    id: u64,
    /// `None` for the client's request itself.
    root: Option<Arc<ActiveTrace>>,
    start: TraceOrigin,
    tracer: Arc<Tracer>,
    state: Mutex<ActiveState>,
}

/// What is known of a request when its trace begins.
#[derive(Clone)]
pub struct TraceOrigin {
    pub wire: TraceWire,
    pub received_ns: u64,
    pub context: Option<Box<TraceContext>>,
    pub sampled: Option<SampledBy>,
    /// The context of the model's span, if another process has the trace.
    pub model_context: Option<Box<TraceContext>>,
}

/// How a request ended.
#[derive(Default)]
pub struct TraceEnd<'a> {
    pub error: Option<&'a Error>,
    /// Bytes of the tensors of the final response, if there is one.
    pub response_bytes: Option<u64>,
    /// 0 = never.
    pub queued_ns: u64,
    pub execution: Option<&'a BatchExecution>,
}

/// What is recorded, in the block of memory that is passed on in the end.
struct ActiveState {
    /// `None` once the trace has ended.
    record: Option<Box<RequestTrace>>,
    tensor_bytes: usize,
    /// It has its final response or its error.
    ended: bool,
}

impl ActiveTrace {
    pub(crate) fn new(
        tracer: Arc<Tracer>,
        id: u64,
        start: TraceOrigin,
        model: &Arc<str>,
    ) -> Arc<Self> {
        let state = ActiveState::new(&tracer, id, 0, model);
        Arc::new(Self { id, root: None, start, tracer, state })
    }

    /// The trace of a request that is made for this one.
    pub fn child(self: &Arc<Self>, model: &Arc<str>) -> Arc<Self> {
        let id = self.tracer.next_id();
        let state = ActiveState::new(&self.tracer, id, self.id, model);
        let root = Some(Arc::clone(self.root.as_ref().unwrap_or(self)));
        let start = TraceOrigin { context: None, ..self.start.clone() };
        Arc::new(Self { id, root, start, tracer: Arc::clone(&self.tracer), state })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// The context that the client sent.
    pub fn context(&self) -> Option<&TraceContext> {
        self.root.as_deref().unwrap_or(self).start.context.as_deref()
    }

    /// The context for what is done for this request: its model's span is the parent.
    pub fn outgoing_context(&self) -> TraceContext {
        if let Some(context) = &self.start.model_context {
            return (**context).clone();
        }
        let ids = self.tracer.trace_ids();
        let root = self.root.as_deref().unwrap_or(self);
        let caller = self.context();
        TraceContext {
            trace_id: caller.map_or_else(|| ids.trace_id(root.id), |caller| caller.trace_id),
            span_id: ids.span_id(self.id, SpanPart::Model),
            sampled: self.start.sampled.is_some(),
            state: caller.map(|caller| caller.state.clone()).unwrap_or_default(),
        }
    }

    /// The `tracestate` that goes with [`ActiveTrace::outgoing_context`]; empty without one.
    pub fn trace_state(&self) -> &str {
        let context = self.start.model_context.as_deref().or_else(|| self.context());
        context.map_or("", |context| &context.state)
    }

    /// A backend reports a point in time under this name.
    pub fn report(&self, name: &str, ns: u64) {
        let name = &name[..name.floor_char_boundary(MAX_ACTIVITY)];
        self.note(Activity::Custom(name.into()), ns);
    }

    /// Removes what backends have reported: name and time. For the process that has the trace.
    pub fn take_reported(&self) -> Vec<(Box<str>, u64)> {
        let mut reported = Vec::new();
        self.write(|record| {
            record.root_mut().timestamps.retain(|(activity, ns)| match activity {
                Activity::Custom(name) => {
                    reported.push((std::mem::take(name), *ns));
                    false
                }
                _ => true,
            });
        });
        reported
    }

    /// Contents of tensors are recorded.
    pub fn wants_tensors(&self) -> bool {
        self.start.sampled.as_ref().is_some_and(|sampled| sampled.levels().tensors)
    }

    pub fn note(&self, activity: Activity, ns: u64) {
        self.write(|record| record.root_mut().note(activity, ns));
    }

    fn write(&self, write: impl FnOnce(&mut RequestTrace)) {
        if let Some(record) = &mut self.state.lock().record {
            write(record);
        }
    }

    /// Receiving the request ended at `end_ns`.
    pub fn received(&self, end_ns: u64) {
        let (start, end) = match self.start.wire {
            TraceWire::V1Http | TraceWire::V2Http => {
                (Activity::HttpRecvStart, Activity::HttpRecvEnd)
            }
            TraceWire::V1Grpc | TraceWire::V2Grpc => {
                (Activity::GrpcWaitReadStart, Activity::GrpcWaitReadEnd)
            }
            TraceWire::Nested => return,
        };
        self.write(|record| {
            let span = record.root_mut();
            span.note(start, self.start.received_ns);
            span.note(end, end_ns);
        });
    }

    /// The request was checked and goes to a version of its model.
    pub fn submitted(&self, version: i64, request_id: &str, rows: u32, input_bytes: u64) {
        let now = now_ns();
        self.write(|record| {
            record.input_bytes = input_bytes;
            let span = record.root_mut();
            span.version = version;
            span.identify(request_id);
            span.rows = rows;
            span.note(Activity::RequestStart, now);
        });
    }

    /// The request is executed in this batch.
    pub fn executed_in(&self, batch: BatchFacts) {
        self.write(|record| record.root_mut().batch = Some(batch));
    }

    /// A response with tensors of `bytes` bytes goes to the frontend, at `now`, and others follow.
    pub fn responded(&self, bytes: u64, now: u64) {
        let is_client = self.root.is_none();
        self.write(|record| {
            record.count_response(bytes);
            if is_client {
                record.root_mut().note(Activity::InferResponseComplete, now);
            }
        });
    }

    /// The request has its final response or an error, at `now`. The times are noted in their order.
    pub fn finished(&self, end: &TraceEnd<'_>, now: u64) {
        let is_client = self.root.is_none();
        let mut state = self.state.lock();
        state.ended = true;
        let Some(record) = &mut state.record else { return };
        let response = end.response_bytes.inspect(|bytes| record.count_response(*bytes));
        let span = record.root_mut();
        if end.queued_ns != 0 {
            span.note(Activity::QueueStart, end.queued_ns);
        }
        if let Some(execution) = end.execution {
            let [input, infer, _] = execution.phases(now);
            let start = execution.start_ns;
            span.note(Activity::ComputeStart, start);
            span.note(Activity::ComputeInputEnd, start + input);
            span.note(Activity::ComputeOutputStart, start + input + infer);
        }
        if response.is_some() && is_client {
            span.note(Activity::InferResponseComplete, now);
        }
        if end.execution.is_some() {
            span.note(Activity::ComputeEnd, now);
        }
        span.failure = end.error.map(failure);
        // Recorded in any case.
        span.timestamps.push((Activity::RequestEnd, now));
    }

    /// The request has its final response or its error.
    pub fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// The client's request id, as soon as it was read.
    pub fn identified(&self, request_id: &str) {
        if !request_id.is_empty() {
            self.write(|record| record.root_mut().identify(request_id));
        }
    }

    /// The request was refused before it went to its model.
    pub fn refused(&self, error: &Error) {
        self.write(|record| record.root_mut().failure = Some(failure(error)));
    }

    /// The client was authenticated under this name.
    pub fn set_caller(&self, name: &Arc<str>) {
        self.write(|record| record.caller = Some(Arc::clone(name)));
    }

    /// A response with this status is being sent. The result is dropped once it was.
    pub fn sending(self: &Arc<Self>, status: u16) -> SendTrace {
        let now = now_ns();
        let activity = match self.start.wire.is_http() {
            true => Activity::HttpSendStart,
            false => Activity::GrpcSendStart,
        };
        self.write(|record| {
            record.status = Some(status);
            record.root_mut().note(activity, now);
        });
        SendTrace(Arc::clone(self))
    }

    /// Records a tensor, at level TENSORS. `bytes` are those of its wire format.
    pub fn tensor(
        &self,
        activity: TensorActivity,
        name: &str,
        dtype: &'static str,
        shape: &[i64],
        bytes: &[u8],
    ) {
        let room = MAX_TENSOR_BYTES.saturating_sub(self.state.lock().tensor_bytes);
        let data = elements_text(dtype, bytes, room);
        let mut state = self.state.lock();
        state.tensor_bytes += data.len();
        let (name, shape) = (name.to_owned(), dims_text(shape));
        if let Some(record) = &mut state.record {
            record.root_mut().tensors.push(TensorRecord { activity, name, data, shape, dtype });
        }
    }
}

impl RequestTrace {
    fn count_response(&mut self, bytes: u64) {
        self.output_bytes += bytes;
        let span = self.root_mut();
        span.responses = span.responses.saturating_add(1);
    }
}

impl RequestSpan {
    fn note(&mut self, activity: Activity, ns: u64) {
        if self.timestamps.len() < MAX_TIMESTAMPS {
            self.timestamps.push((activity, ns));
        }
    }

    /// They are nearly always in order.
    fn sort_times(&mut self) {
        if !self.timestamps.is_sorted_by_key(|(_, ns)| *ns) {
            self.timestamps.sort_by_key(|(_, ns)| *ns);
        }
    }

    fn identify(&mut self, request_id: &str) {
        // It is known twice of most requests.
        let request_id = &request_id[..request_id.floor_char_boundary(MAX_ID)];
        if self.request_id != request_id {
            request_id.clone_into(&mut self.request_id);
        }
    }
}

impl ActiveState {
    fn new(tracer: &Tracer, id: u64, parent_id: u64, model: &Arc<str>) -> Mutex<Self> {
        let mut record = tracer.pool().take();
        let span = record.root_mut();
        (span.id, span.parent_id) = (id, parent_id);
        // A block was mostly used for the same model before.
        if !Arc::ptr_eq(&span.model, model) {
            span.model = Arc::clone(model);
        }
        Mutex::new(Self { record: Some(record), tensor_bytes: 0, ended: false })
    }
}

impl Drop for ActiveTrace {
    fn drop(&mut self) {
        let Some(mut record) = self.state.get_mut().record.take() else { return };
        record.root_mut().sort_times();
        if let Some(root) = self.root.take() {
            root.write(|parent| {
                if parent.spans.len() <= MAX_SPANS {
                    parent.spans.push(std::mem::take(record.root_mut()));
                }
            });
            self.tracer.pool().give_back(record);
            return;
        }
        let sampled = self.start.sampled.take();
        record.wire = self.start.wire;
        record.context = self.start.context.take();
        record.sampled = sampled.as_ref().map(SampledBy::levels);
        record.start_ns = self.start.received_ns;
        if record.end_ns == 0 {
            record.end_ns = now_ns();
        }
        self.tracer.finish(record, sampled);
    }
}

/// Held by a response until it was sent.
pub struct SendTrace(Arc<ActiveTrace>);

impl Drop for SendTrace {
    fn drop(&mut self) {
        let activity = match self.0.start.wire.is_http() {
            true => Activity::HttpSendEnd,
            false => Activity::GrpcSendEnd,
        };
        let now = now_ns();
        self.0.write(|record| {
            record.root_mut().note(activity, now);
            record.end_ns = now;
        });
    }
}

fn failure(error: &Error) -> TraceFailure {
    TraceFailure { code: error.code, message: cut(&error.message, MAX_MESSAGE) }
}

/// At most `max` bytes of a text.
fn cut(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}
