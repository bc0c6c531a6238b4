//! The v2 endpoints over HTTP: everything under `/v2`.

mod answers; // the calls around inference, as JSON
mod backends; // who uses which backend
mod infer; // inference
mod input; // inputs of inference requests
mod json; // JSON as this protocol needs it
mod models; // the repository index, loading and unloading
mod parameters; // request parameters
mod parse; // inference requests
mod receive; // request bodies
mod respond; // inference responses
mod route; // paths

use crate::error::{Error, Result};
use crate::net::context::Context;
use crate::net::http::body::ResponseBody;
use crate::net::status_code;
use crate::net::v2::{SHARED_MEMORY_DISABLED, describe, served, settings, statistics};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use route::{Call, Region, Route};
use std::sync::Arc;

/// Answers a request for a path under `/v2`. Dropping the future cancels an inference.
pub async fn handle<B>(
    ctx: &Arc<Context>,
    request: Request<B>,
    received_ns: u64,
) -> Response<ResponseBody>
where
    B: http_body::Body<Data = Bytes>,
{
    let (parts, body) = request.into_parts();
    let route = match route::route(&parts.method, parts.uri.path()) {
        Ok(route) => route,
        Err((status, is_json)) => {
            let text = answers::error(status.canonical_reason().unwrap_or_default());
            return with_status(status, if is_json { json(text) } else { plain(text) });
        }
    };
    if let Route::Model { name, version, call: Call::Infer } = route {
        return infer::infer(ctx, (name, version), parts.headers, body, received_ns).await;
    }
    // In memory of its own: its futures are large, and an inference is not to carry them about.
    let answer = Box::pin(async { answer(ctx, route, &small_body(body).await?).await });
    answer.await.unwrap_or_else(|error| failure(&error))
}

/// Bodies of everything but inference are a few bytes.
const MAX_SMALL_BODY: u64 = 1 << 20;

async fn small_body<B: http_body::Body<Data = Bytes>>(body: B) -> Result<Bytes> {
    let too_large = |n| {
        Error::invalid(format!(
            "request body of {n} bytes is too long, this endpoint takes at most {MAX_SMALL_BODY}"
        ))
    };
    receive::receive(body, None, 0, None, MAX_SMALL_BODY, too_large).await
}

async fn answer(ctx: &Context, route: Route<'_>, body: &[u8]) -> Result<Response<ResponseBody>> {
    Ok(match route {
        Route::Live => health(describe::live(ctx)?),
        Route::Ready => health(describe::ready(ctx)?),
        Route::Backends => json(backends::answer(ctx)),
        Route::Server => json(answers::server(&describe::server(ctx))),
        Route::Model { name, version, call } => match call {
            Call::Ready if describe::model_ready(ctx, name, version)? => health(true),
            Call::Ready => {
                let why = answers::error("Model version not ready");
                with_status(StatusCode::BAD_REQUEST, plain(why))
            }
            Call::Metadata => json(answers::model(&describe::model(ctx, name, version)?)),
            Call::Config => {
                let served = served(ctx, name, version)?;
                json(trtserver_proto::json::model_config(&served.config).into_bytes())
            }
            Call::Statistics => {
                json(answers::statistics(&statistics::collect(ctx, name, version)?))
            }
            Call::Infer | Call::Generate => {
                served(ctx, name, version)?;
                return Err(not_offered("generate"));
            }
        },
        Route::AllStatistics => json(answers::statistics(&statistics::collect(ctx, "", "")?)),
        Route::Trace { model, change } => {
            let known = settings::trace(ctx, model)?;
            if change && !is_empty(body) {
                return Err(settings::cannot_change("trace"));
            }
            json(answers::trace(known))
        }
        Route::Logging { change } => {
            if change && !is_empty(body) {
                return Err(settings::cannot_change("log"));
            }
            json(answers::log(&settings::log(ctx)))
        }
        // The name that may stand in the path means nothing here, unlike over gRPC.
        Route::Index => json(answers::index(&models::index(ctx, body).await?)),
        Route::Control { repository, name, load } => {
            models::control(ctx, repository, name, load, body).await?;
            plain(Vec::new())
        }
        Route::SharedMemory { kind, region, call } => match call {
            Region::Status => {
                describe::no_region(kind, region)?;
                json(b"[]".to_vec())
            }
            Region::Register | Region::Unregister => {
                return Err(Error::unsupported(SHARED_MEMORY_DISABLED));
            }
        },
    })
}

fn not_offered(what: &str) -> Error {
    Error::unsupported(format!("this server does not offer {what} yet"))
}

/// Nothing to change: no body, or an object without members.
fn is_empty(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    body.is_empty()
        || matches!(json::parse(body), Ok(json::Value::Object(object)) if object.members().next().is_none())
}

/// No body says enough.
fn health(good: bool) -> Response<ResponseBody> {
    let status = if good { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    with_status(status, plain(Vec::new()))
}

fn json(text: Vec<u8>) -> Response<ResponseBody> {
    typed(text, "application/json")
}

/// What the HTTP library of base says of a body of which the server says nothing.
fn plain(text: Vec<u8>) -> Response<ResponseBody> {
    typed(text, "text/plain")
}

fn typed(text: Vec<u8>, kind: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An error as its callers see it.
fn failure(error: &Error) -> Response<ResponseBody> {
    with_status(status_code::http(error.code), json(answers::error(&error.message)))
}

/// An error of an inference outside of what its JSON says: before it is read, and when the answer is made.
fn plain_failure(error: &Error) -> Response<ResponseBody> {
    with_status(status_code::http(error.code), plain(answers::error(&error.message)))
}

fn with_status(status: StatusCode, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    *response.status_mut() = status;
    response
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
