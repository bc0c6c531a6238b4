//! `POST /v2/models/{m}[/versions/{v}]/generate` and `/generate_stream`: tensors as plain JSON
//! members, one response or server-sent events (docs/protocol/v2.md §2.19).

mod events;
mod kv_cache_report;
mod request;
mod response;
mod responses;

use super::infer::traced_response;
use super::infer_request::too_large_json;
use super::response as http_response;
use crate::{ForwardedHeaders, count_refused, find_for_inference};
use bytes::Bytes;
use events::EventBody;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use kv_cache_report::add_kv_cache_report;
use responses::Responses;
use std::sync::Arc;
use tokio::sync::mpsc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_base::state::InFlightGuard;
use trtserver_load_report::ReportFormat;
use trtserver_models::{FoundVersion, OpenVersion};
use trtserver_request_trace::{ActiveTrace, TraceWire};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::MAX_INLINE;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::http::collect::{BodySpec, ReceivedBody, StreamConnection};
use trtserver_wire::http::drain::drain_body;
use trtserver_wire::http::receive;
use trtserver_wire::sink;
use trtserver_wire::trace_context::read_trace_context;
use trtserver_wire::unread::{ConnectionUnread, StreamUnread};

/// Serves a request for one response, or with `streams` for any number of them. Dropping the future
/// or the body of the response cancels the request.
pub async fn serve_generate<B: ReceivedBody>(
    ctx: &Arc<FrontendContext>,
    (name, version): (&str, &str),
    headers: HeaderMap,
    body: B,
    streams: bool,
    received_ns: u64,
) -> Response<ResponseBody> {
    let in_flight = ctx.state.begin_request();
    let connection = body.connection();
    let asked = ReportFormat::requested(&headers);
    let report = ctx.demanded_report(&headers, ReportFormat::Text);
    let mut trace = None;
    let found = find_for_inference(ctx, name, version).and_then(|served| {
        trace = ctx.begin_trace(TraceWire::V2Http, &served.name, received_ns, || {
            read_trace_context(&headers)
        });
        match read_head(ctx, &headers) {
            Ok(head) => Ok((served, head)),
            Err(error) => Err(count_refused(&served, trace.as_ref(), received_ns, error)),
        }
    });
    let (served, (length, forwarded)) = match found {
        Ok(found) => found,
        Err(error) => {
            drain_body(std::pin::pin!(body), receive::MAX_DRAINED).await;
            return traced_response(trace, http_response::error_response(&error));
        }
    };
    let unread = connection.unread.clone();
    let unread = unread.unwrap_or_else(|| ConnectionUnread::new(ctx.settings.unread));
    let call = GenerateCall {
        ctx: Arc::clone(ctx),
        found: served.clone(),
        unread: StreamUnread::new(unread, ctx.next_stream_number()),
        streams,
        received_ns,
        in_flight,
        forwarded,
        trace: trace.clone(),
    };
    let submitted = match collect(ctx, &served, length, body).await {
        Ok(body) => call.submit_or_defer(body).await,
        Err(error) => Err(error),
    };
    let result = match submitted {
        Ok(responses) if streams => Ok(stream(responses, connection).await),
        Ok(responses) => single(responses).await,
        Err(error) => Err(count_refused(&served, trace.as_ref(), received_ns, error)),
    };
    let mut response = result.unwrap_or_else(|error| http_response::error_response(&error));
    let is_reported = match asked {
        Some(format) => add_kv_cache_report(format, response.headers_mut()).await,
        None => false,
    };
    if let Some(report) = report.filter(|_| !is_reported) {
        report.add_to(response.headers_mut());
    }
    traced_response(trace, response)
}

/// The length of the body, if it is known, and the headers for the model.
fn read_head(
    ctx: &FrontendContext,
    headers: &HeaderMap,
) -> Result<(Option<u64>, Option<Box<ForwardedHeaders>>)> {
    require_identity(headers)?;
    let length = receive::content_length(headers)?;
    let forwarded =
        ForwardedHeaders::from_headers(ctx.settings.http_header_forward.as_ref(), headers)?;
    Ok((length, forwarded))
}

/// Compressed bodies are refused, as in Triton.
fn require_identity(headers: &HeaderMap) -> Result<()> {
    match headers.get(CONTENT_ENCODING).map_or(&b"identity"[..], HeaderValue::as_bytes) {
        b"identity" | b"" => Ok(()),
        _ => Err(Error::invalid("Unsupported content-encoding, only 'identity' is supported.")),
    }
}

async fn collect<B: ReceivedBody>(
    ctx: &FrontendContext,
    served: &OpenVersion,
    length: Option<u64>,
    body: B,
) -> Result<Bytes> {
    let (limit, longest) = (ctx.settings.http_max_input_size, ctx.settings.http_max_body_size);
    let too_large = |n| match limit <= longest {
        true => too_large_json(n, limit),
        false => receive::too_large(n, longest),
    };
    let tag = served.signature.owner.tag(LedgerHolder::Input);
    let spec = BodySpec { length, limit: limit.min(longest), tag, ..BodySpec::default() };
    receive::receive_body(body, spec, too_large).await
}

/// A request whose body has arrived.
struct GenerateCall {
    ctx: Arc<FrontendContext>,
    found: FoundVersion,
    unread: Arc<StreamUnread>,
    /// The client takes any number of responses.
    streams: bool,
    received_ns: u64,
    in_flight: InFlightGuard,
    forwarded: Option<Box<ForwardedHeaders>>,
    trace: Option<Arc<ActiveTrace>>,
}

impl GenerateCall {
    /// Reads the request and queues it; a large one on a decode worker.
    async fn submit_or_defer(self, body: Bytes) -> Result<Responses> {
        decode_workers::run_if(body.len() > MAX_INLINE, move || self.submit(&body)).await?
    }

    fn submit(self, body: &[u8]) -> Result<Responses> {
        let Self { ctx, found, unread, .. } = self;
        if let Some(trace) = &self.trace {
            trace.received(now_ns());
        }
        let mut unchecked = request::read_generate_request(
            &found.signature,
            body,
            ctx.settings.http_max_input_size,
        )?;
        if let Some(forwarded) = &self.forwarded {
            forwarded.add_to(&mut unchecked.parameters);
        }
        unchecked.streaming = self.streams;
        unchecked.trace = self.trace;
        let limit = Arc::clone(&unread) as _;
        unchecked.stream = Some(limit);
        let id = unchecked.id.clone();
        let (sender, receiver) = mpsc::unbounded_channel();
        let sink = sink::stream_sink(0, sender, Arc::clone(&unread));
        let (responder, served) = unchecked.submit(&ctx, &found, self.received_ns, sink)?;
        Ok(Responses::new(served, id, receiver, responder, unread, self.in_flight))
    }
}

/// The response of a model that sends exactly one.
async fn single(mut responses: Responses) -> Result<Response<ResponseBody>> {
    let Some(response) = responses.next().await else { return Err(not_one()) };
    let response = response?;
    match responses.next().await {
        None => {}
        Some(Ok(_)) => return Err(not_one()),
        Some(Err(error)) => return Err(error),
    }
    let json = response::encode_generate_response(&responses, response, response::BodyForm::Object)
        .await?;
    let mut response = Response::new(ResponseBody::from(json));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

fn not_one() -> Error {
    Error::internal(
        "generate expects model to produce exactly 1 response, use generate stream for model that \
         generates various number of responses",
    )
}

/// The first response decides the status; all of them are events.
async fn stream(responses: Responses, connection: StreamConnection) -> Response<ResponseBody> {
    let (status, events) = EventBody::begin(responses, connection).await;
    let mut response = Response::new(ResponseBody::streamed(Box::pin(events)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
