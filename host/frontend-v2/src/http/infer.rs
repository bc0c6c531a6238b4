//! `POST /v2/models/{m}[/versions/{v}]/infer`.

use super::infer_response::{EncodedResponse, HEADER_LENGTH};
use super::{infer_request, infer_response, response};
use crate::{
    ForwardedHeaders, RequestRegions, UncheckedRequest, count_refused, find_for_inference,
    require_unary,
};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{HeaderMap, HeaderValue, Response};
use infer_request::ResponseSpec;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_models::{FoundVersion, OpenVersion};
use trtserver_request::InferResponse;
use trtserver_request_trace::{ActiveTrace, TraceWire};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::{MAX_INLINE, ReadyOrDeferred};
use trtserver_wire::http::accept::find_headers;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::http::collect::{BodySpec, ReceivedBody};
use trtserver_wire::http::drain::drain_body;
use trtserver_wire::http::receive;
use trtserver_wire::sink;
use trtserver_wire::sink::PendingResponse;
use trtserver_wire::trace_context::read_trace_context;

/// Serves an inference request. Dropping the future cancels it.
pub async fn serve_infer<B>(
    ctx: &Arc<FrontendContext>,
    (name, version): (&str, &str),
    headers: HeaderMap,
    body: B,
    received_ns: u64,
) -> Response<ResponseBody>
where
    B: ReceivedBody,
{
    let _in_flight = ctx.state.begin_request();
    let mut trace = None;
    let found = find_for_inference(ctx, name, version).and_then(|served| {
        trace = ctx.begin_trace(TraceWire::V2Http, &served.name, received_ns, || {
            read_trace_context(&headers)
        });
        match InferHead::read(ctx, &served, &headers) {
            Ok(head) => Ok((served, head)),
            Err(error) => Err(count_refused(&served, trace.as_ref(), received_ns, error)),
        }
    });
    let (served, head) = match found {
        Ok(found) => found,
        Err(error) => {
            let refused = Box::pin(refuse_unread(body, error));
            return traced_response(trace, refused.await);
        }
    };
    let submitted = match head.body(ctx, &served, body).await {
        Ok(body) => match head.submit_or_defer(ctx, &served, body, received_ns, trace.clone()) {
            ReadyOrDeferred::Ready(submitted) => submitted,
            ReadyOrDeferred::Deferred(work) => work.await,
        },
        Err(error) => Err(error),
    };
    let (pending, spec, executing) = match submitted {
        Ok(submitted) => submitted,
        Err(error) => {
            let error = count_refused(&served, trace.as_ref(), received_ns, error);
            return traced_response(trace, response::error_response(&error));
        }
    };
    let result = pending.await;
    let response = match encode_or_defer(executing, spec, result, headers) {
        ReadyOrDeferred::Ready(response) => response,
        ReadyOrDeferred::Deferred(work) => work.await,
    };
    traced_response(trace, response)
}

/// Has the trace of a request note when its response was sent.
#[inline]
pub fn traced_response(
    trace: Option<Arc<ActiveTrace>>,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    if let Some(trace) = trace {
        let status = response.status().as_u16();
        response.body_mut().trace(trace.sending(status));
    }
    response
}

/// The response to a result, or the future that encodes it on a decode worker.
fn encode_or_defer(
    served: Arc<OpenVersion>,
    spec: ResponseSpec,
    result: Result<InferResponse>,
    headers: HeaderMap,
) -> ReadyOrDeferred<Response<ResponseBody>> {
    let response = match result {
        Ok(response) => response,
        Err(error) => return ReadyOrDeferred::Ready(response::plain_failure(&error)),
    };
    if !infer_response::is_heavy(&served, &spec, &response) {
        return compress_or_defer(EncodedResponse::new(&served, &spec, response, headers));
    }
    ReadyOrDeferred::defer(async move {
        let encoded = infer_response::encode_on_worker(served, spec, response, headers).await;
        match compress_or_defer(encoded) {
            ReadyOrDeferred::Ready(response) => response,
            ReadyOrDeferred::Deferred(work) => work.await,
        }
    })
}

/// An encoded response; if it is to be compressed, the future that does so.
fn compress_or_defer(encoded: Result<EncodedResponse>) -> ReadyOrDeferred<Response<ResponseBody>> {
    match encoded.map(EncodedResponse::uncompressed) {
        Ok(Ok(response)) => ReadyOrDeferred::Ready(response),
        Ok(Err((encoded, coding))) => ReadyOrDeferred::defer(async move {
            let compressed = encoded.compressed(coding).await;
            compressed.unwrap_or_else(|error| response::plain_failure(&error))
        }),
        Err(error) => ReadyOrDeferred::Ready(response::plain_failure(&error)),
    }
}

/// Refuses a request after its head. Its body is drained, because clients read the response only
/// after they have sent it.
async fn refuse_unread<B>(body: B, error: Error) -> Response<ResponseBody>
where
    B: ReceivedBody,
{
    drain_body(std::pin::pin!(body), receive::MAX_DRAINED).await;
    let mut response = response::plain_failure(&error);
    if error.message == UNSUPPORTED_ENCODING {
        let accepted = HeaderValue::from_static("gzip, deflate");
        response.headers_mut().insert(ACCEPT_ENCODING, accepted);
    }
    response
}

/// The response to a request that was queued, how it is written, and the version that executes the
/// request.
type PendingInfer = (PendingResponse, ResponseSpec, Arc<OpenVersion>);

const UNSUPPORTED_ENCODING: &str = "Unsupported compression type";

/// The headers that describe the body.
struct InferHead {
    length: Option<u64>,
    compressed: bool,
    /// Length of the JSON part, unchecked.
    json: Option<i64>,
    forwarded: Option<Box<ForwardedHeaders>>,
}

impl InferHead {
    fn read(ctx: &FrontendContext, served: &OpenVersion, headers: &HeaderMap) -> Result<Self> {
        require_unary(
            served,
            "HTTP end point doesn't support models with decoupled transaction policy",
        )?;
        let [encoding, json] = find_headers(headers, [&CONTENT_ENCODING, &HEADER_LENGTH]);
        let compressed = match encoding.map_or(&b"identity"[..], HeaderValue::as_bytes) {
            b"identity" => false,
            b"gzip" | b"deflate" => true,
            _ => return Err(Error::unsupported(UNSUPPORTED_ENCODING)),
        };
        let json = json.map(|value| leading_number(value.as_bytes()));
        let length = receive::content_length(headers)?;
        let forwarded =
            ForwardedHeaders::from_headers(ctx.settings.http_header_forward.as_ref(), headers)?;
        Ok(Self { length, compressed, json, forwarded })
    }

    /// The body, decompressed if necessary.
    async fn body<B>(&self, ctx: &FrontendContext, served: &OpenVersion, body: B) -> Result<Bytes>
    where
        B: ReceivedBody,
    {
        let (limit, longest) = (ctx.settings.http_max_input_size, ctx.settings.http_max_body_size);
        // Only the limit of all bodies holds for binary sections after the JSON.
        let sections = matches!(self.json, Some(n) if n != 0);
        let most = if sections || self.compressed { longest } else { limit.min(longest) };
        let too_large = |n| match self.json {
            _ if most == longest => receive::too_large(n, longest),
            Some(0) => infer_request::too_large_raw(n, limit),
            _ => infer_request::too_large_json(n, limit),
        };
        let aligned_at = self.json.map_or(0, |n| usize::try_from(n).unwrap_or(0));
        let arena = served.arena.as_ref();
        let tag = served.signature.owner.tag(LedgerHolder::Input);
        let (length, pool) = (self.length, served.input_pool.as_deref());
        let has_tensors = aligned_at > 0 || self.json == Some(0);
        let spec = BodySpec { length, limit: most, aligned_at, has_tensors, arena, pool, tag };
        let body = receive::receive_body(body, spec, too_large).await?;
        if self.compressed {
            Box::pin(receive::decompress_body(body, limit, tag)).await
        } else {
            Ok(body)
        }
    }

    /// Reading or checking the request takes long.
    fn is_heavy(&self, served: &OpenVersion, body: &Bytes) -> bool {
        let json = match self.json {
            Some(n) => usize::try_from(n).unwrap_or(0).min(body.len()),
            None => body.len(),
        };
        json > MAX_INLINE || (body.len() > MAX_INLINE && served.signature.takes_strings())
    }

    /// Reads the request and queues it, or returns the future that does so on a decode worker.
    fn submit_or_defer(
        self,
        ctx: &Arc<FrontendContext>,
        found: &FoundVersion,
        body: Bytes,
        received_ns: u64,
        trace: Option<Arc<ActiveTrace>>,
    ) -> ReadyOrDeferred<Result<PendingInfer>> {
        if let Some(trace) = &trace {
            trace.received(now_ns());
        }
        if self.is_heavy(found, &body) {
            let (ctx, found) = (Arc::clone(ctx), found.clone());
            let submit = move || {
                let (mut unchecked, spec) = self.request(&ctx, &found, body)?;
                unchecked.trace = trace;
                queue(&ctx, &found, unchecked, spec, received_ns)
            };
            return ReadyOrDeferred::defer(
                async move { decode_workers::run_on_worker(submit).await? },
            );
        }
        let (mut unchecked, spec) = match self.request(ctx, found, body) {
            Ok(request) => request,
            Err(error) => return ReadyOrDeferred::Ready(Err(error)),
        };
        unchecked.trace = trace;
        if unchecked.takes_long(found) {
            let (ctx, found) = (Arc::clone(ctx), found.clone());
            let queue = move || queue(&ctx, &found, unchecked, spec, received_ns);
            return ReadyOrDeferred::defer(
                async move { decode_workers::run_on_worker(queue).await? },
            );
        }
        ReadyOrDeferred::Ready(queue(ctx, found, unchecked, spec, received_ns))
    }

    fn request(
        &self,
        ctx: &FrontendContext,
        served: &OpenVersion,
        body: Bytes,
    ) -> Result<(UncheckedRequest, ResponseSpec)> {
        let (limit, regions) =
            (ctx.settings.http_max_input_size, RequestRegions::from_context(ctx));
        let read = match self.json {
            Some(0) => infer_request::read_raw_request(&served.signature, body),
            // An empty body counts as raw binary.
            None if body.is_empty() => infer_request::read_raw_request(&served.signature, body),
            None => infer_request::read_infer_request(
                &served.signature,
                &body,
                body.len(),
                limit,
                regions,
            ),
            Some(n) => match usize::try_from(n).ok().filter(|n| *n <= body.len()) {
                Some(n) => {
                    infer_request::read_infer_request(&served.signature, &body, n, limit, regions)
                }
                None => Err(Error::invalid(format!(
                    "inference header size should be in range (0, {}), got: {n}",
                    body.len()
                ))),
            },
        };
        match &self.forwarded {
            None => read,
            Some(forwarded) => read.map(|(mut unchecked, spec)| {
                forwarded.add_to(&mut unchecked.parameters);
                (unchecked, spec)
            }),
        }
    }
}

/// The number that a text begins with, 0 if it begins with none: Triton reads the header by C's
/// `atoi`, so that a request with an empty or unreadable one is raw binary.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let sign = text.first().filter(|b| matches!(b, b'-' | b'+'));
    let digits = text[usize::from(sign.is_some())..].iter().take_while(|b| b.is_ascii_digit());
    let number =
        digits.fold(0i64, |n, digit| n.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if sign == Some(&b'-') { -number } else { number }
}

/// Checks a request and puts it into the queue of its model.
fn queue(
    ctx: &FrontendContext,
    found: &FoundVersion,
    unchecked: UncheckedRequest,
    spec: ResponseSpec,
    received_ns: u64,
) -> Result<PendingInfer> {
    let (sink, receiver) = sink::unary_sink(&"HTTP inference");
    let (responder, executing) = unchecked.submit(ctx, found, received_ns, sink)?;
    Ok((receiver.await_response(responder), spec, executing))
}
