//! ModelInfer: the hot path, without tonic in between.

use super::message;
use crate::error::{Error, Result};
use crate::net::context::Context;
use crate::net::grpc::{deadline, frame};
use crate::net::http::body::ResponseBody;
use crate::net::v2::{refused, require_unary, serving};
use crate::net::{sink, status_code};
use crate::repository::Served;
use crate::state::Phase;
use bytes::Bytes;
use std::pin::pin;
use std::sync::Arc;
use trtserver_proto::schema::Described;
use trtserver_proto::v2::{ModelInferRequest, ModelInferResponse};

/// `ModelInferResponse.raw_output_contents`.
const RAW_OUTPUTS: u32 = 6;

/// Answers `/inference.GRPCInferenceService/ModelInfer`. Dropping the future cancels the inference.
pub async fn infer<B>(
    ctx: &Arc<Context>,
    request: http::Request<B>,
    received_ns: u64,
) -> http::Response<ResponseBody>
where
    B: http_body::Body<Data = Bytes>,
{
    let (parts, body) = request.into_parts();
    if let Err(code) = frame::check_call(&parts.method, &parts.headers) {
        let mut response = http::Response::new(ResponseBody::empty());
        *response.status_mut() = code;
        return response;
    }
    let deadline_ns = deadline::of(&parts.headers);
    let work = pin!(async {
        let arena = |model: &str| ctx.repository.arena(model);
        let message = frame::read(ModelInferRequest::schema(), &parts.headers, body, arena).await?;
        answer(ctx, message, deadline_ns, received_ns).await.map_err(status_code::status)
    });
    match deadline::within(deadline_ns, work).await {
        Ok((head, payloads)) => frame::respond(&head, RAW_OUTPUTS, &payloads),
        Err(status) => frame::refuse(&status),
    }
}

/// One request, one response: the message without its tensors, and the tensors.
pub async fn answer(
    ctx: &Arc<Context>,
    request: ModelInferRequest,
    deadline_ns: u64,
    received_ns: u64,
) -> Result<(ModelInferResponse, Vec<Bytes>)> {
    let _in_flight = ctx.state.begin_request();
    let served = find(ctx, &request)?;
    let (sink, waiting) = sink::unary();
    let submitted = require_unary(
        &served,
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
    )
    .and_then(|()| message::read(&served, request))
    .and_then(|(mut draft, asked)| {
        draft.deadline_ns = deadline_ns;
        Ok((draft.submit(ctx, &served, received_ns, sink)?, asked))
    });
    let (reply, asked) = submitted.map_err(|e| refused(&served, received_ns, e))?;
    let response = waiting.wait(reply).await?;
    message::write(&served, &asked, response)
}

/// What serves the model that `request` is for.
pub fn find(ctx: &Context, request: &ModelInferRequest) -> Result<Arc<Served>> {
    serving(ctx, &request.model_name, &request.model_version).map_err(|error| {
        match ctx.state.phase() {
            Phase::Exiting => Error::unavailable(
                "GRPC server is shutting down and has stopped accepting new requests.",
            ),
            _ => error,
        }
    })
}
