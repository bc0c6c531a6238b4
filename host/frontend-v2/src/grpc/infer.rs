//! ModelInfer, without tonic: the fast path parses ordinary messages, the fallback decodes all
//! others with prost.

use super::fallback;
use super::fast_path::FastRequest;
use super::response::{RAW_OUTPUTS, ResponseHead, ResponseSpec};
use crate::{
    ForwardedHeaders, RequestRegions, UncheckedRequest, count_refused, find_for_inference,
    require_unary,
};
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response};
use http_body::Body;
use std::sync::Arc;
use tonic::Status;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::state::{InFlightGuard, ServerPhase};
use trtserver_models::{FoundVersion, OpenVersion};
use trtserver_proto::schema::Described;
use trtserver_proto::v2::ModelInferRequest;
use trtserver_request::InferResponse;
use trtserver_request_trace::{ActiveTrace, TraceContext, TraceWire};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::{MAX_INLINE, ReadyOrDeferred};
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::compression::Compression;
use trtserver_wire::grpc::unary;
use trtserver_wire::grpc::unary::MessageBuf;
use trtserver_wire::sink::PendingResponse;
use trtserver_wire::trace_context::read_trace_context;
use trtserver_wire::{sink, status_code};

/// Number of `raw_input_contents` in ModelInferRequest.
pub const RAW_INPUTS: u32 = 7;

/// Serves `/inference.GRPCInferenceService/ModelInfer`. Dropping the future cancels the request.
pub fn serve_infer<B: Body<Data = Bytes> + Unpin>(
    ctx: &Arc<FrontendContext>,
    request: Request<B>,
    received_ns: u64,
) -> impl Future<Output = Response<GrpcBody>> + use<B> {
    unary::serve_unary(ctx, request, move |mut call| async move {
        let message = call.receive().await?;
        let settings = &call.ctx.settings;
        let forwarded =
            ForwardedHeaders::from_headers(settings.grpc_header_forward.as_ref(), &call.headers);
        let forwarded = forwarded.map_err(status_code::to_grpc_status)?;
        let compression = settings
            .grpc_compression
            .and_then(|level| Compression::from_headers(&call.headers, level));
        let trace_context = call.ctx.tracer.is_active().then(|| read_trace_context(&call.headers));
        let trace_context = trace_context.flatten();
        let deadline_ns = call.deadline_ns;
        let arrival = Arrival { received_ns, deadline_ns, forwarded, trace_context };
        let pending = match begin_or_defer(&call.ctx, message, arrival) {
            ReadyOrDeferred::Ready(pending) => pending?,
            ReadyOrDeferred::Deferred(work) => work.await?,
        };
        let PendingRequest { served, spec, response, trace, _in_flight } = pending;
        let encoded = match response.await {
            Ok(response) => match encode_or_defer(served, spec, response, call.headers) {
                ReadyOrDeferred::Ready(encoded) => encoded,
                ReadyOrDeferred::Deferred(work) => work.await,
            },
            Err(error) => Err(error),
        };
        let result = match (encoded, compression) {
            (Ok(response), Some(compression)) => Ok(Box::pin(compression.compress(response)).await),
            (encoded, _) => encoded.map_err(status_code::to_grpc_status),
        };
        match trace {
            None => result,
            Some(trace) => traced_result(&trace, result),
        }
    })
}

/// Has the trace of a request note when its response was sent.
pub fn traced_result(
    trace: &Arc<ActiveTrace>,
    result: Result<Response<GrpcBody>, Status>,
) -> Result<Response<GrpcBody>, Status> {
    match result {
        Ok(mut response) => {
            response.body_mut().trace(trace.sending(0));
            Ok(response)
        }
        Err(status) => {
            drop(trace.sending(status.code() as u16));
            Err(status)
        }
    }
}

/// When a call arrived, its deadline (0 = none), and its metadata for the model and for traces.
struct Arrival {
    received_ns: u64,
    deadline_ns: u64,
    forwarded: Option<Box<ForwardedHeaders>>,
    trace_context: Option<Box<TraceContext>>,
}

/// Reading or checking the message takes long.
fn is_heavy(ctx: &FrontendContext, message: &MessageBuf) -> bool {
    message.remaining() > MAX_INLINE
        && (unary::is_heavy(message, RAW_INPUTS)
            || message.first_text().is_some_and(|model| {
                ctx.models.takes_strings(model)
                    || ctx.models.hashes_long(model, message.remaining())
            }))
}

/// As [`begin`]; of a message that takes long the future that reads it on a decode worker.
fn begin_or_defer(
    ctx: &Arc<FrontendContext>,
    frames: MessageBuf,
    arrival: Arrival,
) -> ReadyOrDeferred<Result<PendingRequest, Status>> {
    if !is_heavy(ctx, &frames) {
        return match begin(ctx, frames, &arrival) {
            Ok(pending) => ReadyOrDeferred::Ready(pending),
            Err(request) if fallback::takes_long(ctx, &request) => {
                let ctx = Arc::clone(ctx);
                let begin = move || begin_decoded(&ctx, *request, &arrival);
                ReadyOrDeferred::defer(async {
                    decode_workers::run_on_worker(begin)
                        .await
                        .map_err(status_code::to_grpc_status)?
                })
            }
            Err(request) => ReadyOrDeferred::Ready(begin_decoded(ctx, *request, &arrival)),
        };
    }
    let ctx = Arc::clone(ctx);
    ReadyOrDeferred::defer(async move {
        let (frames, _reservation) =
            unary::reserve_decoded(ModelInferRequest::schema(), frames).await?;
        let begin = move || {
            begin(&ctx, frames, &arrival)
                .unwrap_or_else(|request| begin_decoded(&ctx, *request, &arrival))
        };
        decode_workers::run_on_worker(begin).await.map_err(status_code::to_grpc_status)?
    })
}

/// Reads a message and queues its request, if it is ordinary; else returns the decoded message.
fn begin(
    ctx: &Arc<FrontendContext>,
    mut frames: MessageBuf,
    arrival: &Arrival,
) -> Result<Result<PendingRequest, Status>, Box<ModelInferRequest>> {
    if frames.remaining() >= unary::MIN_IN_ARENA
        && let Some(memory) = frames.model().and_then(|m| m.input_memory(&ctx.models))
        && let Some(arena) = memory.arena
    {
        frames.copy_into(arena);
    } else if let Some(message) = frames.whole()
        && let Some(request) = FastRequest::parse(message)
    {
        let (model, version) = (request.model, request.version);
        let read = |served: &OpenVersion| match request.into_unchecked(served, message) {
            Some(read) => Ok(read),
            // Not ordinary, or invalid: the fallback accepts the message or returns the error.
            None => unary::decode_message(ModelInferRequest::schema(), frames.clone())
                .map_err(|status| Error::internal(status.message()))
                .and_then(|request| {
                    fallback::read_request(served, request, RequestRegions::from_context(ctx))
                }),
        };
        let pending = start(ctx, model, version, arrival, read);
        return Ok(pending.map_err(status_code::to_grpc_status));
    }
    match unary::decode_message(ModelInferRequest::schema(), frames) {
        Ok(request) => Err(Box::new(request)),
        Err(status) => Ok(Err(status)),
    }
}

/// Queues the request of a message that is not ordinary.
fn begin_decoded(
    ctx: &Arc<FrontendContext>,
    request: ModelInferRequest,
    arrival: &Arrival,
) -> Result<PendingRequest, Status> {
    let (model, version) = (request.model_name.clone(), request.model_version.clone());
    let read = |served: &OpenVersion| {
        fallback::read_request(served, request, RequestRegions::from_context(ctx))
    };
    start(ctx, &model, &version, arrival, read).map_err(status_code::to_grpc_status)
}

/// A request that was queued.
struct PendingRequest {
    served: Arc<OpenVersion>,
    spec: ResponseSpec,
    response: PendingResponse,
    trace: Option<Arc<ActiveTrace>>,
    _in_flight: InFlightGuard,
}

/// As [`encode`]; of a response that takes long the future that encodes it on a decode worker.
fn encode_or_defer(
    served: Arc<OpenVersion>,
    spec: ResponseSpec,
    response: InferResponse,
    recycled: HeaderMap,
) -> ReadyOrDeferred<Result<Response<GrpcBody>>> {
    if !spec.is_heavy(&response) {
        return ReadyOrDeferred::Ready(encode(&served, &spec, response, recycled));
    }
    let encode = move || encode(&served, &spec, response, recycled);
    ReadyOrDeferred::defer(async move { decode_workers::run_on_worker(encode).await? })
}

/// Encodes the response. `recycled` is a header map that is no longer needed; its memory is reused.
fn encode(
    served: &OpenVersion,
    spec: &ResponseSpec,
    mut response: InferResponse,
    recycled: HeaderMap,
) -> Result<Response<GrpcBody>> {
    spec.rank(served, &mut response)?;
    let head = ResponseHead::from_response(served, spec, &response);
    let payloads = response.outputs.iter().map(|o| o.data.payload());
    Ok(unary::respond_with(head.len(), |to| head.encode(to), RAW_OUTPUTS, payloads, recycled))
}

/// Looks up the model and queues the request that `read` returns.
fn start(
    ctx: &Arc<FrontendContext>,
    model: &str,
    version: &str,
    arrival: &Arrival,
    read: impl FnOnce(&OpenVersion) -> Result<(UncheckedRequest, ResponseSpec)>,
) -> Result<PendingRequest> {
    let in_flight = ctx.state.begin_request();
    let found = find_version(ctx, model, version)?;
    let trace = ctx.begin_trace(TraceWire::V2Grpc, &found.name, arrival.received_ns, || {
        arrival.trace_context.clone()
    });
    if let Some(trace) = &trace {
        trace.received(now_ns());
    }
    let (sink, receiver) = sink::unary_sink(&"ModelInferHandler");
    let submitted = require_unary(
        &found,
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
    )
    .and_then(|()| read(&found))
    .and_then(|(mut unchecked, spec)| {
        unchecked.deadline_ns = arrival.deadline_ns;
        unchecked.trace = trace.clone();
        if let Some(forwarded) = &arrival.forwarded {
            forwarded.add_to(&mut unchecked.parameters);
        }
        Ok((unchecked.submit(ctx, &found, arrival.received_ns, sink)?, spec))
    });
    let ((responder, served), spec) =
        submitted.map_err(|e| count_refused(&found, trace.as_ref(), arrival.received_ns, e))?;
    let response = receiver.await_response(responder);
    Ok(PendingRequest { served, spec, response, trace, _in_flight: in_flight })
}

/// The served model version.
///
/// # Errors
/// There is none, or the caller may not use it.
pub fn find_version(ctx: &FrontendContext, model: &str, version: &str) -> Result<FoundVersion> {
    ctx.check_model(model)?;
    find_for_inference(ctx, model, version).map_err(|error| match ctx.state.phase() {
        ServerPhase::Exiting => Error::unavailable(
            "GRPC server is shutting down and has stopped accepting new requests.",
        ),
        _ => error,
    })
}
