//! Inference over v1 gRPC without tonic: the unary call, and what it shares with stream requests.

use crate::infer::{AcceptedRequest, InferFailure, InferResult, PendingRequest, RequestArrival};
use crate::input_data;
use crate::input_data::InputParts;
use crate::request::{RequestPlan, RequestedVersion};
use crate::{legacy, request_status};
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response};
use http_body::Body;
use prost::Message;
use std::sync::Arc;
use tonic::Status;
use trtserver_base::error::Error;
use trtserver_proto::schema::Described;
use trtserver_proto::v1::{InferRequest, InferResponse, InferResponseHeader};
use trtserver_request::Sink;
use trtserver_request_trace::TraceWire;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::{MAX_INLINE, ReadyOrDeferred};
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::deadline;
use trtserver_wire::grpc::unary;
use trtserver_wire::grpc::unary::{MAX_MESSAGE, MIN_IN_ARENA, MessageBuf};
use trtserver_wire::sink;
use trtserver_wire::sink::UnaryReceiver;
use trtserver_wire::status_code;

/// Number of `raw_input` in `InferRequest`.
pub const RAW_INPUT: u32 = 4;
/// Number of `raw_output` in `InferResponse`.
const RAW_OUTPUT: u32 = 3;

/// Serves `/nvidia.inferenceserver.GRPCService/Infer`, whose head was received at `received_ns`.
/// Dropping the future cancels the request.
pub fn serve_infer<B: Body<Data = Bytes> + Unpin>(
    ctx: &Arc<FrontendContext>,
    request: Request<B>,
    received_ns: u64,
) -> impl Future<Output = Response<GrpcBody>> + use<B> {
    unary::serve_unary(ctx, request, move |mut call| async move {
        let message = call.receive().await?;
        let arrival = RequestArrival::new(&call.ctx, TraceWire::V1Grpc, received_ns, &call.headers);
        let begun = match read_or_defer(&call.ctx, message, arrival, call.deadline_ns) {
            ReadyOrDeferred::Ready(begun) => begun?,
            ReadyOrDeferred::Deferred(work) => work.await?,
        };
        let trace = begun.as_ref().ok().and_then(|running| running.trace.clone());
        let (response, per_item) = respond(&call.ctx, begun, call.deadline_ns).await?;
        let mut response = encode(response, per_item, call.headers);
        if let Some(trace) = trace {
            response.body_mut().trace(trace.sending(0));
        }
        Ok(response)
    })
}

/// Encodes the response. `recycled` is a header map that is no longer needed; its memory is reused.
fn encode(mut response: InferResponse, per_item: bool, recycled: HeaderMap) -> Response<GrpcBody> {
    let raw = std::mem::take(&mut response.raw_output);
    if per_item {
        let InferResponse { request_status, meta_data, .. } = response;
        let response = legacy::LegacyResponse {
            request_status,
            meta_data: meta_data.map(legacy::LegacyHeader::new),
        };
        return unary::respond_unary(&response, RAW_OUTPUT, &raw, recycled);
    }
    unary::respond_unary(&response, RAW_OUTPUT, &raw, recycled)
}

/// A request that was queued or refused.
type InferStart = Result<PendingRequest, InferFailure>;

/// Reading or checking the message takes long.
fn is_heavy(ctx: &FrontendContext, frames: &MessageBuf) -> bool {
    frames.remaining() > MAX_INLINE
        && (unary::is_heavy(frames, RAW_INPUT)
            || frames.first_text().is_some_and(|model| ctx.models.takes_strings(model)))
}

/// Decodes a message.
///
/// # Errors
/// It cannot be decoded.
fn decode(ctx: &FrontendContext, mut frames: MessageBuf) -> Result<InferRequest, Status> {
    if frames.remaining() >= MIN_IN_ARENA
        && let Some(memory) = frames.model().and_then(|m| m.input_memory(&ctx.models))
        && let Some(arena) = memory.arena
    {
        frames.copy_into(arena);
    }
    let legacy::WithLegacy(request) = unary::decode_message(InferRequest::schema(), frames)?;
    Ok(request)
}

/// Decodes a message and queues its request; of a message that takes long the future that does so
/// on a decode worker.
fn read_or_defer(
    ctx: &Arc<FrontendContext>,
    frames: MessageBuf,
    arrival: RequestArrival,
    deadline_ns: u64,
) -> ReadyOrDeferred<Result<InferStart, Status>> {
    if !is_heavy(ctx, &frames) {
        let begun = decode(ctx, frames).map(|request| {
            begin_or_defer(ctx, request, arrival, deadline_ns, sink::unary_sink(&"InferHandler"))
        });
        return match begun {
            Ok(ReadyOrDeferred::Ready(begun)) => ReadyOrDeferred::Ready(Ok(begun)),
            Ok(ReadyOrDeferred::Deferred(work)) => ReadyOrDeferred::defer(async { Ok(work.await) }),
            Err(status) => ReadyOrDeferred::Ready(Err(status)),
        };
    }
    let ctx = Arc::clone(ctx);
    ReadyOrDeferred::defer(async move {
        let (frames, _reservation) = unary::reserve_decoded(InferRequest::schema(), frames).await?;
        let read = move || {
            let request = decode(&ctx, frames)?;
            Ok(begin(&ctx, request, arrival, deadline_ns, sink::unary_sink(&"InferHandler")))
        };
        decode_workers::run_on_worker(read).await.map_err(status_code::to_grpc_status)?
    })
}

/// The response to the one request of a call, and whether sizes in it are per batch item.
///
/// # Errors
/// The call's deadline has passed, or the request was refused early. Every other failure is in the
/// response.
async fn respond(
    ctx: &FrontendContext,
    begun: InferStart,
    deadline_ns: u64,
) -> Result<(InferResponse, bool), Status> {
    let running = match begun {
        Ok(running) => running,
        // v1's own statuses have no code for it.
        Err(InferFailure { error, .. }) if error.code.is_access_refusal() => {
            return Err(status_code::to_grpc_status(error));
        }
        Err(failure) => return Ok((failed_response(ctx, &failure), false)),
    };
    let per_item = running.per_item();
    match running.finish().await {
        Ok(done) => Ok((succeeded(ctx, done, MAX_MESSAGE), per_item)),
        Err(failure) => {
            deadline::check_deadline(deadline_ns)?;
            // Neither for this, which balancers shall see.
            if failure.error.retry_after_ms.is_some() {
                return Err(status_code::to_grpc_status(failure.error));
            }
            Ok((failed_response(ctx, &failure), per_item))
        }
    }
}

/// Checks a request and puts it into the queue of its model, without waiting.
fn begin(
    ctx: &FrontendContext,
    request: InferRequest,
    arrival: RequestArrival,
    deadline_ns: u64,
    sink: (Sink, UnaryReceiver),
) -> InferStart {
    let (call, plan, parts) = accept(ctx, request, arrival)?;
    call.start(plan, parts, deadline_ns, sink)
}

/// As [`begin`]; of a request that copies much the future that does so on a decode worker.
pub fn begin_or_defer(
    ctx: &Arc<FrontendContext>,
    request: InferRequest,
    arrival: RequestArrival,
    deadline_ns: u64,
    sink: (Sink, UnaryReceiver),
) -> ReadyOrDeferred<InferStart> {
    match accept(ctx, request, arrival) {
        Ok((call, plan, parts)) => call.start_or_defer(ctx, plan, parts, deadline_ns, sink),
        Err(failure) => ReadyOrDeferred::Ready(Err(failure)),
    }
}

/// The checked header of a request, and its data.
fn accept(
    ctx: &FrontendContext,
    request: InferRequest,
    arrival: RequestArrival,
) -> Result<(AcceptedRequest<&FrontendContext>, RequestPlan, InputParts), InferFailure> {
    let InferRequest { model_name, model_version, meta_data, raw_input } = request;
    let version = RequestedVersion::from_number(model_version);
    let header = Ok(meta_data.unwrap_or_default());
    let (call, plan) = AcceptedRequest::open(ctx, &model_name, version, header, arrival)?;
    let parts =
        input_data::entry_sizes(&call.served.signature, &plan, raw_input, &ctx.shared_memory);
    let parts = parts.map_err(|e| call.refuse(e))?;
    Ok((call, plan, parts))
}

/// Waits for the response to a request of [`begin_or_defer`].
pub async fn finish_infer(ctx: &FrontendContext, running: PendingRequest) -> InferResponse {
    let trace = running.trace.clone();
    let response = match running.finish().await {
        Ok(done) => succeeded(ctx, done, MAX_MESSAGE),
        Err(failure) => failed_response(ctx, &failure),
    };
    // The stream writes it when its turn comes, which no trace waits for.
    drop(trace.map(|trace| trace.sending(0)));
    response
}

fn succeeded(ctx: &FrontendContext, done: InferResult, longest: usize) -> InferResponse {
    let id = done.built.header.id;
    let response = InferResponse {
        request_status: Some(request_status::success_status(&ctx.settings, done.request_id)),
        meta_data: Some(done.built.header),
        raw_output: done.built.raw.into_vec(),
    };
    let len = response.encoded_len();
    if len <= longest {
        return response;
    }
    let error = Error::invalid(format!(
        "Response has byte size {len} which exceeds gRPC's byte size limit {longest}."
    ));
    failed_response(ctx, &InferFailure { error, id, request_id: done.request_id })
}

/// A failed response contains nothing of the request but the client's id.
pub fn failed_response(ctx: &FrontendContext, failure: &InferFailure) -> InferResponse {
    InferResponse {
        request_status: Some(request_status::failure_status(
            &ctx.settings,
            &failure.error,
            failure.request_id,
        )),
        meta_data: Some(InferResponseHeader { id: failure.id, ..Default::default() }),
        raw_output: Vec::new(),
    }
}

#[cfg(test)]
#[path = "infer_tests.rs"]
mod tests;
