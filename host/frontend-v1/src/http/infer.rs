//! The inference endpoint (docs/protocol/v1.md §3.6): a body of input tensors, a response of output
//! tensors and a trailer.

use super::endpoint;
use super::response::{BINARY, V1Response};
use crate::infer::{AcceptedRequest, InferFailure, InferResult, RequestArrival};
use crate::request;
use crate::request::RequestedVersion;
use crate::{header_text, input_data, legacy, response};
use http::header::{EXPECT, USER_AGENT};
use http::{HeaderMap, Request};
use http_body::Body;
use std::pin::{Pin, pin};
use std::sync::Arc;
use trtserver_base::error::{Code, Error};
use trtserver_base::ledger::LedgerHolder;
use trtserver_proto::text;
use trtserver_request_trace::{ActiveTrace, TraceWire};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers::ReadyOrDeferred;
use trtserver_wire::http::collect::{BodyError, BodySpec, ReceivedBody, collect_body};
use trtserver_wire::http::drain::drain_body;
use trtserver_wire::http::receive::too_slow;
use trtserver_wire::sink;

/// The user agent of the clients of 18.04 and 18.05, and of many later ones.
const LEGACY_AGENT: &[u8] = b"libcurl-agent/1.0";

/// Serves one inference request.
pub async fn serve_infer<B: ReceivedBody>(
    ctx: &Arc<FrontendContext>,
    model: &str,
    version: RequestedVersion,
    request: Request<B>,
    received_ns: u64,
) -> V1Response {
    let (head, body) = request.into_parts();
    let mut body = pin!(body);
    let arrival = RequestArrival::new(ctx, TraceWire::V1Http, received_ns, &head.headers);
    let mut trace = None;
    let request = (model, version, &head.headers);
    let result = run(ctx, request, body.as_mut(), arrival, &mut trace).await;
    let mut response = match result {
        Ok(done) => {
            let format = endpoint::query_value(head.uri.query(), "format");
            let binary = match format.as_deref() {
                Some(format) => format == "binary",
                // Clients of those releases send no format and expect binary.
                None => {
                    ctx.settings.emulate_18_04
                        || (done.per_item && from_legacy_agent(&head.headers))
                }
            };
            success(ctx, done, binary)
        }
        Err(failure) => self::failure(ctx, &failure),
    };
    // A client that sent `Expect` waits for the response before it sends the body.
    if !head.headers.contains_key(EXPECT) {
        drain_body(body, ctx.settings.http_max_input_size).await;
    }
    response.reused_headers = head.headers;
    response.trace = trace;
    response
}

async fn run<B: ReceivedBody>(
    ctx: &Arc<FrontendContext>,
    (model, version, headers): (&str, RequestedVersion, &HeaderMap),
    body: Pin<&mut B>,
    arrival: RequestArrival,
    trace: &mut Option<Arc<ActiveTrace>>,
) -> Result<InferResult, InferFailure> {
    let header = request::parse_header(model, headers.get("nv-inferrequest").map(|v| v.as_bytes()));
    let (call, plan) = AcceptedRequest::open(ctx, model, version, header, arrival)?;
    trace.clone_from(&call.trace);
    let signature = &call.served.signature;
    let expected = plan.bytes();
    let announced = body.size_hint().exact().filter(|announced| *announced != expected as u64);
    let collected = match announced {
        // Neither a longer nor a shorter body is buffered.
        Some(announced) => Err(BodyError::TooLong(announced)),
        None => {
            let length = expected as u64;
            let arena = call.served.arena.as_ref();
            let tag = signature.owner.tag(LedgerHolder::Input);
            let length = Some(length);
            let (limit, pool) = (expected as u64, call.served.input_pool.as_deref());
            let spec =
                BodySpec { length, limit, aligned_at: 0, has_tensors: true, arena, pool, tag };
            collect_body(body, spec).await
        }
    };
    let parts = match collected {
        Ok(body) => input_data::split_body(signature, &plan, &body, &ctx.shared_memory),
        Err(BodyError::TooLong(got)) => {
            let got = usize::try_from(got).unwrap_or(usize::MAX);
            Err(input_data::wrong_body(signature, &plan, got))
        }
        Err(BodyError::OutOfMemory(e)) => Err(e.refuse(&format!("input data for model '{model}'"))),
        Err(BodyError::TimedOut) => Err(too_slow()),
        Err(BodyError::Disconnected | BodyError::TooManyChunks) => {
            let text =
                format!("the client disconnected while sending input data for model '{model}'");
            Err(Error::new(Code::Cancelled, text))
        }
    };
    let parts = parts.map_err(|e| call.refuse(e))?;
    let started =
        match call.start_or_defer(ctx, plan, parts, 0, sink::unary_sink(&"HTTP inference")) {
            ReadyOrDeferred::Ready(started) => started,
            ReadyOrDeferred::Deferred(work) => work.await,
        };
    started?.finish().await
}

fn from_legacy_agent(headers: &HeaderMap) -> bool {
    headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes() == LEGACY_AGENT)
}

fn success(ctx: &FrontendContext, done: InferResult, binary: bool) -> V1Response {
    let mut response = V1Response::success(&ctx.settings, done.request_id, BINARY);
    for raw in done.built.raw {
        response.body.push(raw);
    }
    let header = done.built.header;
    match (binary, done.per_item) {
        (true, false) => response.body.push_message(&header),
        (true, true) => {
            let legacy = legacy::LegacyHeader::new(header.clone());
            response.body.push_slice(&legacy.trailer(ctx.settings.emulate_18_04));
        }
        (false, _) => {}
    }
    let shown = if done.per_item { response::per_item(header) } else { header };
    if !binary {
        response.body.push_slice(text::print(&shown).as_bytes());
    }
    response.infer_response =
        Some(header_text::format_response_header(&response::without_classes(shown)));
    response
}

/// A failed response contains nothing of the request but the client's id.
fn failure(ctx: &FrontendContext, failure: &InferFailure) -> V1Response {
    let mut response =
        V1Response::failure(&ctx.settings, &failure.error, failure.request_id, BINARY);
    let id = match failure.id {
        0 => String::new(),
        id => format!("id: {id}"),
    };
    response.infer_response = Some(id.into());
    response
}
