//! ModelInfer: the hot path, without tonic in between.

use super::fast_path::FastRequest;
use super::message::{self, ResponseSpec};
use crate::error::{Error, Result};
use crate::net::context::Context;
use crate::net::grpc::body::GrpcBody;
use crate::net::grpc::deadline;
use crate::net::grpc::unary::{self, MessageBuf};
use crate::net::sink::UnaryReceiver;
use crate::net::v2::{UncheckedRequest, refused, require_unary, serving};
use crate::net::{sink, status_code};
use crate::repository::Served;
use crate::request::Responder;
use crate::state::{InFlightGuard, Phase};
use bytes::{Buf, Bytes};
use std::pin::pin;
use std::sync::{Arc, Weak};
use tonic::Status;
use trtserver_proto::schema::Described;
use trtserver_proto::v2::{ModelInferRequest, ModelInferResponse};

/// Answers `/inference.GRPCInferenceService/ModelInfer`. Dropping the future cancels the inference.
///
/// Not an `async fn`, whose future would be larger by the request as it came.
pub fn infer<B>(
    ctx: &Arc<Context>,
    request: http::Request<B>,
    received_ns: u64,
) -> impl Future<Output = http::Response<GrpcBody>> + use<B>
where
    B: http_body::Body<Data = Bytes>,
{
    let ctx = Arc::clone(ctx);
    let (parts, body) = request.into_parts();
    let is_call = unary::check_call(&parts.method, &parts.headers);
    let headers = parts.headers;
    async move {
        if let Err(code) = is_call {
            let mut response = http::Response::new(GrpcBody::empty());
            *response.status_mut() = code;
            return response;
        }
        let deadline_ns = deadline::of(&headers);
        let ctx = &ctx;
        let work = pin!(async move {
            let arena = |model: &str| ctx.models.arena(model);
            let message = unary::receive(&headers, body, &arena).await?;
            let running = begin(ctx, message, deadline_ns, received_ns)?;
            let PendingRequest { served, asked, waiting, reply, _in_flight } = running;
            let response = waiting.wait(reply).await;
            response
                .and_then(|r| message::respond(&served, &asked, r, headers))
                .map_err(status_code::status)
        });
        match deadline::within(deadline_ns, work).await {
            Ok(response) => response,
            Err(status) => unary::refuse(&status),
        }
    }
}

/// Reads a message and queues the request in it.
fn begin(
    ctx: &Arc<Context>,
    mut frames: MessageBuf,
    deadline_ns: u64,
    received_ns: u64,
) -> Result<PendingRequest, Status> {
    if frames.remaining() >= unary::SHARED
        && let Some(arena) = frames.first_text().and_then(|model| ctx.models.arena(model))
    {
        frames.copy_into(arena);
    } else if let Some(message) = frames.whole()
        && let Some(request) = FastRequest::parse(message)
    {
        let (model, version) = (request.model, request.version);
        let read = |served: &Served| match request.draft(served, message) {
            Some(read) => Ok(read),
            // Something is wrong with it; what, is said by those who look more closely.
            None => unary::decode(ModelInferRequest::schema(), frames.clone())
                .map_err(|status| Error::internal(status.message()))
                .and_then(|request| message::read(served, request)),
        };
        return start(ctx, model, version, deadline_ns, received_ns, read)
            .map_err(status_code::status);
    }
    let request = unary::decode(ModelInferRequest::schema(), frames)?;
    start_message(ctx, request, deadline_ns, received_ns).map_err(status_code::status)
}

/// A request that was queued, and what waits for its answer.
struct PendingRequest {
    served: Arc<Served>,
    asked: ResponseSpec,
    waiting: UnaryReceiver,
    reply: Weak<Responder>,
    _in_flight: InFlightGuard,
}
fn start_message(
    ctx: &Arc<Context>,
    request: ModelInferRequest,
    deadline_ns: u64,
    received_ns: u64,
) -> Result<PendingRequest> {
    let (model, version) = (request.model_name.clone(), request.model_version.clone());
    let read = |served: &Served| message::read(served, request);
    start(ctx, &model, &version, deadline_ns, received_ns, read)
}

/// Queues the request that `read` makes.
fn start(
    ctx: &Arc<Context>,
    model: &str,
    version: &str,
    deadline_ns: u64,
    received_ns: u64,
    read: impl FnOnce(&Served) -> Result<(UncheckedRequest, ResponseSpec)>,
) -> Result<PendingRequest> {
    let in_flight = ctx.state.begin_request();
    let served = find(ctx, model, version)?;
    let (sink, waiting) = sink::unary();
    let submitted = require_unary(
        &served,
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
    )
    .and_then(|()| read(&served))
    .and_then(|(mut draft, asked)| {
        draft.deadline_ns = deadline_ns;
        Ok((draft.submit(ctx, &served, received_ns, sink)?, asked))
    });
    let (reply, asked) = submitted.map_err(|e| refused(&served, received_ns, e))?;
    Ok(PendingRequest { served, asked, waiting, reply, _in_flight: in_flight })
}

/// One request, one response: the message without its tensors, and the tensors.
pub async fn answer(
    ctx: &Arc<Context>,
    request: ModelInferRequest,
    deadline_ns: u64,
    received_ns: u64,
) -> Result<(ModelInferResponse, Vec<Bytes>)> {
    let running = start_message(ctx, request, deadline_ns, received_ns)?;
    let PendingRequest { served, asked, waiting, reply, _in_flight } = running;
    message::write(&served, &asked, waiting.wait(reply).await?)
}

/// What serves the model.
pub fn find(ctx: &Context, model: &str, version: &str) -> Result<Arc<Served>> {
    serving(ctx, model, version).map_err(|error| match ctx.state.phase() {
        Phase::Exiting => Error::unavailable(
            "GRPC server is shutting down and has stopped accepting new requests.",
        ),
        _ => error,
    })
}
