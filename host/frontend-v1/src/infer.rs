//! One inference request of v1, in the same steps on both wires: look-up, header check, data check,
//! queue, response.

use super::input_data::{self, InputParts};
use super::request::{self, RequestPlan, RequestedVersion};
use super::response::{self, BuiltResponse, ResponseSpec};
use http::HeaderMap;
use std::ops::Deref;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::state::InFlightGuard;
use trtserver_models::OpenVersion;
use trtserver_proto::v1::InferRequestHeader;
use trtserver_proto::v1::infer_request_header::Flag;
use trtserver_request::ObservedInference;
use trtserver_request::{
    CorrelationId, InferRequest, InferResponse, RequestContext, RequestSequence, Responder, Sink,
    UsedMemory, classes, request_tracing,
};
use trtserver_request_trace::{ActiveTrace, TraceContext, TraceWire};
use trtserver_wire::context::{FrontendContext, failure_reason};
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::ReadyOrDeferred;
use trtserver_wire::sink::{PendingResponse, UnaryReceiver};
use trtserver_wire::trace_context::read_trace_context;

/// A failed request, with the ids that its response repeats.
#[derive(Debug)]
pub struct InferFailure {
    pub error: Error,
    /// The client's id.
    pub id: u64,
    /// The server's id; 0 if the request failed before it got one.
    pub request_id: u64,
}

/// A request whose model was found: failures are counted from here on.
pub struct AcceptedRequest<C> {
    ctx: C,
    pub served: Arc<OpenVersion>,
    header: InferRequestHeader,
    received_ns: u64,
    pub trace: Option<Arc<ActiveTrace>>,
}

/// How a request arrived.
pub struct RequestArrival {
    pub wire: TraceWire,
    pub received_ns: u64,
    /// The context of the client's trace, if something is traced.
    pub trace_context: Option<Box<TraceContext>>,
}

impl RequestArrival {
    /// With the context in the head of a request.
    pub fn new(
        ctx: &FrontendContext,
        wire: TraceWire,
        received_ns: u64,
        headers: &HeaderMap,
    ) -> Self {
        let read = ctx.tracer.is_active().then(|| read_trace_context(headers));
        Self { wire, received_ns, trace_context: read.flatten() }
    }
}

impl<'a> AcceptedRequest<&'a FrontendContext> {
    /// Finds the model, then parses and checks the header. An unknown model is refused before a
    /// header that cannot be parsed.
    pub fn open(
        ctx: &'a FrontendContext,
        model: &str,
        version: RequestedVersion,
        header: Result<InferRequestHeader>,
        arrival: RequestArrival,
    ) -> Result<(Self, RequestPlan), InferFailure> {
        let RequestArrival { wire, received_ns, trace_context } = arrival;
        let id = header.as_ref().map_or(0, |h| h.id);
        let found = ctx
            .check_model(model)
            .and_then(|()| request::find_version(&ctx.models, model, version))
            .map_err(|error| InferFailure { error, id, request_id: 0 })?;
        let served = found.executing(&header.as_ref().map(sequence).unwrap_or_default());
        let (header, unreadable) = match header {
            Ok(header) => (header, None),
            Err(error) => (InferRequestHeader::default(), Some(error)),
        };
        let trace = ctx.begin_trace(wire, &served.name, received_ns, || trace_context);
        let call = Self { ctx, served, header, received_ns, trace };
        if let Some(error) = unreadable {
            return Err(call.refuse(error));
        }
        if call.served.decoupled() {
            return Err(call.refuse(Error::unsupported(format!(
                "model '{}' is decoupled and may send any number of responses, this protocol supports exactly one",
                call.served.name
            ))));
        }
        match request::plan_request(&call.served.signature, &call.header) {
            Ok(plan) => Ok((call, plan)),
            Err(error) => Err(call.refuse(error)),
        }
    }

    /// As [`AcceptedRequest::start`]; of a request that copies much the future that starts it on a
    /// decode worker.
    pub fn start_or_defer(
        self,
        ctx: &Arc<FrontendContext>,
        plan: RequestPlan,
        parts: InputParts,
        deadline_ns: u64,
        sink: (Sink, UnaryReceiver),
    ) -> ReadyOrDeferred<Result<PendingRequest, InferFailure>> {
        let hashed = || parts.iter().map(|part| part.len()).sum();
        if !plan.copies_much(&self.served.signature) && !self.served.hashes_long(hashed) {
            return ReadyOrDeferred::Ready(self.start(plan, parts, deadline_ns, sink));
        }
        let Self { served, header, received_ns, trace, .. } = self;
        let call = AcceptedRequest { ctx: Arc::clone(ctx), served, header, received_ns, trace };
        let id = call.header.id;
        let start = move || call.start(plan, parts, deadline_ns, sink);
        ReadyOrDeferred::defer(async move {
            let started = decode_workers::run_on_worker(start).await;
            started.unwrap_or_else(|error| Err(InferFailure { error, id, request_id: 0 }))
        })
    }
}

impl<C: Deref<Target = FrontendContext>> AcceptedRequest<C> {
    /// Counts a failure before execution.
    pub fn refuse(&self, error: Error) -> InferFailure {
        if let Some(trace) = &self.trace {
            trace.identified(&id_text(self.header.id));
            trace.refused(&error);
        }
        let batch = request::counted_batch(&self.served.signature, &self.header);
        let ns = now_ns().saturating_sub(self.received_ns);
        self.served.stats.failure(batch, ns, failure_reason(&error), false);
        let id = || id_text(self.header.id);
        let observed = ObservedInference::current(id, &self.served.name, self.served.version);
        if let Some(refused) = observed {
            refused.ended(batch, self.received_ns, None, Some(&error));
        }
        InferFailure { error, id: self.header.id, request_id: 0 }
    }

    /// Refuses the request if the server is not ready, makes the checks that TRTIS made during
    /// execution, and queues the request. `deadline_ns` 0 = none.
    pub fn start(
        self,
        mut plan: RequestPlan,
        parts: InputParts,
        deadline_ns: u64,
        (sink, receiver): (Sink, UnaryReceiver),
    ) -> Result<PendingRequest, InferFailure> {
        let in_flight = self.ctx.state.begin_request();
        self.ctx.require_open(&self.served, &sequence(&self.header)).map_err(|e| self.refuse(e))?;
        let request_id = self.ctx.state.next_request_id();
        let signature = &self.served.signature;
        request::set_destinations(&mut plan, &self.header, &self.ctx.shared_memory)
            .map_err(|e| InferFailure { request_id, ..self.refuse(e) })?;
        let (batch, per_item, requested) = (plan.batch, plan.per_item, plan.outputs.clone());
        let mut inputs = input_data::read_tensors(signature, plan, parts)
            .map_err(|e| InferFailure { request_id, ..self.refuse(e) })?;
        let unusable = requested.iter().find(|w| {
            w.classes != 0 && !classes::supports_classes(signature.outputs[w.index()].dtype)
        });
        let checked = match unusable {
            Some(w) => {
                let spec = &signature.outputs[w.index()];
                Err(response::no_classes(&spec.name, spec.dtype))
            }
            None => input_data::check_strings(signature, &mut inputs),
        };
        checked.map_err(|e| InferFailure { request_id, ..self.refuse(e) })?;

        let context = RequestContext {
            signature: Arc::clone(signature),
            stats: Some(Arc::clone(&self.served.stats)),
            received_ns: self.received_ns,
            batch,
            wording: trtserver_request::context::ErrorWording::V1,
            used_memory: UsedMemory::from_tensors(&inputs, &requested),
            outputs: requested.clone(),
            stream: None,
            waits: false,
        };
        if let Some(trace) = &self.trace {
            trace.received(now_ns());
        }
        let observed = ObservedInference::current(
            || id_text(self.header.id),
            &self.served.name,
            self.served.version,
        );
        let responder = Responder::observed(context, sink, self.trace.clone(), observed);
        let response = receiver.await_response(Arc::downgrade(&responder));
        let h = &self.header;
        let request = InferRequest {
            id: id_text(h.id),
            inputs,
            sequence: sequence(h),
            priority: h.priority.into(),
            timeout_us: h.timeout_microseconds,
            parameters: Vec::new(),
            deadline_ns,
            streaming: false,
            warmup: false,
            client: self.ctx.client_turn(),
            responder,
        };
        let id = h.id;
        if let Some(trace) = &self.trace {
            request_tracing::trace_submission(trace, &request, self.served.version);
        }
        self.served.submit(request);
        let spec = ResponseSpec { served: self.served, batch, id, outputs: requested, per_item };
        let trace = self.trace;
        Ok(PendingRequest { spec, request_id, response, trace, _in_flight: in_flight })
    }
}

fn sequence(header: &InferRequestHeader) -> RequestSequence {
    let id = match header.correlation_id {
        0 => CorrelationId::None,
        n => CorrelationId::Number(n),
    };
    let has = |flag: Flag| header.flags & flag as u32 != 0;
    RequestSequence { id, start: has(Flag::SequenceStart), end: has(Flag::SequenceEnd) }
}

/// A request that was queued. Dropping it cancels the request.
pub struct PendingRequest {
    spec: ResponseSpec,
    request_id: u64,
    response: PendingResponse,
    pub trace: Option<Arc<ActiveTrace>>,
    _in_flight: InFlightGuard,
}

/// A successful response.
pub struct InferResult {
    pub built: BuiltResponse,
    pub request_id: u64,
    pub batch: u32,
    pub per_item: bool,
}

impl PendingRequest {
    /// Sizes in the request were per batch item, so they are in the response.
    pub fn per_item(&self) -> bool {
        self.spec.per_item
    }

    pub async fn finish(self) -> Result<InferResult, InferFailure> {
        let PendingRequest { spec, request_id, response, trace: _trace, _in_flight } = self;
        let (batch, per_item) = (spec.batch, spec.per_item);
        let id = spec.id;
        let built = match response.await {
            Ok(response) => match build_or_defer(spec, response) {
                ReadyOrDeferred::Ready(built) => built,
                ReadyOrDeferred::Deferred(work) => work.await,
            },
            Err(error) => Err(error),
        };
        match built {
            Ok(built) => Ok(InferResult { built, request_id, batch, per_item }),
            Err(error) => Err(InferFailure { error: with_known_code(error), id, request_id }),
        }
    }
}

/// The outputs of a response; if ranking them takes long, the future that does so on a decode
/// worker.
fn build_or_defer(
    spec: ResponseSpec,
    response: InferResponse,
) -> ReadyOrDeferred<Result<BuiltResponse>> {
    if !spec.is_heavy(&response) {
        return ReadyOrDeferred::Ready(response::build_response(&spec, response));
    }
    let build = move || response::build_response(&spec, response);
    ReadyOrDeferred::defer(async move { decode_workers::run_on_worker(build).await? })
}

/// The error with a code that all clients of v1 know: those before v1.1 do not know the name
/// `ALREADY_EXISTS` and would report that the status is missing.
fn with_known_code(mut error: Error) -> Error {
    if error.code == Code::AlreadyExists {
        error.code = Code::InvalidArg;
    }
    error
}

/// The client's id as text; 0 = none.
fn id_text(id: u64) -> String {
    if id == 0 { String::new() } else { id.to_string() }
}

#[cfg(test)]
#[path = "infer_tests.rs"]
mod tests;
