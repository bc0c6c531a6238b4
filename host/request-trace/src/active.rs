//! A trace in progress: what is recorded while a request is served.

use crate::activity::{Activity, TensorActivity};
use crate::context::TraceContext;
use crate::ids::SpanPart;
use crate::request_trace::{
    BatchFacts, MAX_ID, MAX_TENSOR_BYTES, MAX_TIMESTAMPS, RequestSpan, RequestTrace, TensorRecord,
    TraceFailure, TraceReason, TraceWire,
};
use crate::sampling::SampledBy;
use crate::tensor_text::{dims_text, elements_text};
use crate::tracer::Tracer;
use parking_lot::Mutex;
use smallvec::SmallVec;
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

#[derive(Default)]
struct ActiveState {
    span: RequestSpan,
    /// Of the client's request: its steps that have ended.
    children: Vec<RequestSpan>,
    tensor_bytes: usize,
    input_bytes: u64,
    output_bytes: u64,
    /// It has its final response or its error.
    ended: bool,
    status: Option<u16>,
    /// When the response was sent.
    sent_ns: Option<u64>,
    caller: Option<Arc<str>>,
}

impl ActiveTrace {
    pub(crate) fn new(
        tracer: Arc<Tracer>,
        id: u64,
        start: TraceOrigin,
        model: &Arc<str>,
    ) -> Arc<Self> {
        let span = RequestSpan { id, model: Arc::clone(model), ..RequestSpan::default() };
        let state = Mutex::new(ActiveState { span, ..ActiveState::default() });
        Arc::new(Self { id, root: None, start, tracer, state })
    }

    /// The trace of a request that is made for this one.
    pub fn child(self: &Arc<Self>, model: &Arc<str>) -> Arc<Self> {
        let id = self.tracer.next_id();
        let span =
            RequestSpan { id, parent_id: self.id, model: Arc::clone(model), ..Default::default() };
        let state = Mutex::new(ActiveState { span, ..ActiveState::default() });
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
        self.state.lock().span.timestamps.retain(|(activity, ns)| match activity {
            Activity::Custom(name) => {
                reported.push((std::mem::take(name), *ns));
                false
            }
            _ => true,
        });
        reported
    }

    /// Contents of tensors are recorded.
    pub fn wants_tensors(&self) -> bool {
        self.start.sampled.as_ref().is_some_and(|sampled| sampled.levels().tensors)
    }

    pub fn note(&self, activity: Activity, ns: u64) {
        self.state.lock().note(activity, ns);
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
        let mut state = self.state.lock();
        state.note(start, self.start.received_ns);
        state.note(end, end_ns);
    }

    /// The request was checked and goes to a version of its model.
    pub fn submitted(&self, version: i64, request_id: &str, rows: u32, input_bytes: u64) {
        let now = now_ns();
        let mut state = self.state.lock();
        state.span.version = version;
        state.span.identify(request_id);
        state.span.rows = rows;
        state.input_bytes = input_bytes;
        state.note(Activity::RequestStart, now);
    }

    /// The request is executed in this batch.
    pub fn executed_in(&self, batch: &Arc<BatchFacts>) {
        self.state.lock().span.batch = Some(Arc::clone(batch));
    }

    /// A response with tensors of `bytes` bytes goes to the frontend, at `now`.
    pub fn responded(&self, bytes: u64, now: u64) {
        let mut state = self.state.lock();
        state.span.responses = state.span.responses.saturating_add(1);
        state.output_bytes += bytes;
        if self.root.is_none() {
            state.note(Activity::InferResponseComplete, now);
        }
    }

    /// The request has its final response or an error, at `now`. It was queued at `queued_ns` (0 = never) and
    /// executed as `execution`.
    pub fn finished(
        &self,
        error: Option<&Error>,
        queued_ns: u64,
        execution: Option<&BatchExecution>,
        now: u64,
    ) {
        let mut state = self.state.lock();
        if queued_ns != 0 {
            state.note(Activity::QueueStart, queued_ns);
        }
        if let Some(execution) = execution {
            let [input, infer, _] = execution.phases(now);
            let start = execution.start_ns;
            state.note(Activity::ComputeStart, start);
            state.note(Activity::ComputeInputEnd, start + input);
            state.note(Activity::ComputeOutputStart, start + input + infer);
            state.note(Activity::ComputeEnd, now);
        }
        state.span.failure = error.map(failure);
        state.ended = true;
        state.note_last(Activity::RequestEnd, now);
    }

    /// The request has its final response or its error.
    pub fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// The client's request id, as soon as it was read.
    pub fn identified(&self, request_id: &str) {
        self.state.lock().span.identify(request_id);
    }

    /// The request was refused before it went to its model.
    pub fn refused(&self, error: &Error) {
        self.state.lock().span.failure = Some(failure(error));
    }

    /// The client was authenticated under this name.
    pub fn set_caller(&self, name: &Arc<str>) {
        self.state.lock().caller = Some(Arc::clone(name));
    }

    /// A response with this status is being sent. The result is dropped once it was.
    pub fn sending(self: &Arc<Self>, status: u16) -> SendTrace {
        let now = now_ns();
        let mut state = self.state.lock();
        state.status = Some(status);
        let activity = match self.start.wire.is_http() {
            true => Activity::HttpSendStart,
            false => Activity::GrpcSendStart,
        };
        state.note(activity, now);
        drop(state);
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
        state.span.tensors.push(TensorRecord { activity, name, data, shape, dtype });
    }
}

impl RequestSpan {
    fn identify(&mut self, request_id: &str) {
        // It is known twice of most requests.
        let request_id = &request_id[..request_id.floor_char_boundary(MAX_ID)];
        if self.request_id != request_id {
            request_id.clone_into(&mut self.request_id);
        }
    }
}

impl ActiveState {
    fn note(&mut self, activity: Activity, ns: u64) {
        if self.span.timestamps.len() < MAX_TIMESTAMPS {
            self.span.timestamps.push((activity, ns));
        }
    }

    /// A time that is recorded in any case.
    fn note_last(&mut self, activity: Activity, ns: u64) {
        self.span.timestamps.push((activity, ns));
    }
}

impl Drop for ActiveTrace {
    fn drop(&mut self) {
        let mut state = std::mem::take(self.state.get_mut());
        state.span.timestamps.sort_by_key(|(_, ns)| *ns);
        if let Some(root) = self.root.take() {
            let mut root = root.state.lock();
            if root.children.len() < MAX_SPANS {
                root.children.push(state.span);
            }
            return;
        }
        let mut spans = SmallVec::new();
        spans.push(state.span);
        spans.extend(state.children);
        let wire = self.start.wire;
        let received_ns = self.start.received_ns;
        let (context, sampled) = (self.start.context.take(), self.start.sampled.take());
        let levels = sampled.as_ref().map(SampledBy::levels);
        let trace = RequestTrace {
            spans,
            wire,
            context,
            ids: self.tracer.trace_ids().clone(),
            sampled: levels,
            reason: TraceReason::Sampled,
            start_ns: received_ns,
            end_ns: state.sent_ns.unwrap_or_else(now_ns),
            unix_offset_ns: 0,
            status: state.status,
            input_bytes: state.input_bytes,
            output_bytes: state.output_bytes,
            caller: state.caller,
        };
        self.tracer.finish(trace, sampled);
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
        let mut state = self.0.state.lock();
        state.note(activity, now);
        state.sent_ns = Some(now);
    }
}

fn failure(error: &Error) -> TraceFailure {
    TraceFailure { code: error.code, message: cut(&error.message, MAX_MESSAGE) }
}

/// At most `max` bytes of a text.
fn cut(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}
