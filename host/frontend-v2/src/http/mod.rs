//! v2 over HTTP: everything under `/v2`.

mod backends;
mod endpoint;
mod generate;
mod health;
mod infer;
mod infer_request;
mod infer_response;
mod input;
pub mod json;
mod loads;
mod log_settings;
mod management_json;
mod memory;
mod parameters;
mod regions;
mod repository;
mod response;
mod shared_memory;

pub use response::failure;

use crate::{find_ready, metadata, readiness, statistics, trace_settings};
use bytes::Bytes;
use endpoint::{Endpoint, ModelEndpoint, RegionAction};
use http::{Method, Request, Response, StatusCode};
use response::{json, plain, with_status};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_config::ApiGroup;
use trtserver_wire::access::AccessRefusal;
use trtserver_wire::context::Context;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::http::collect::{BodySpec, ReceivedBody};
use trtserver_wire::http::drain::drain;
use trtserver_wire::http::receive::{MAX_DRAINED, receive};

/// Serves a request for a path under `/v2`. Dropping the future cancels an inference request.
pub async fn handle<B>(
    ctx: &Arc<Context>,
    request: Request<B>,
    received_ns: u64,
) -> Response<ResponseBody>
where
    B: ReceivedBody,
{
    let (parts, body) = request.into_parts();
    let endpoint = match Endpoint::from_request(&parts.method, parts.uri.path()) {
        Ok(endpoint) => endpoint,
        Err((status, is_json)) => {
            let text = management_json::error(status.canonical_reason().unwrap_or_default());
            return with_status(status, if is_json { json(text) } else { plain(text) });
        }
    };
    if let Endpoint::Model { name, version, call: ModelEndpoint::Infer } = endpoint {
        return infer::infer(ctx, (name, version), parts.headers, body, received_ns).await;
    }
    if let Endpoint::Model { name, version, call: ModelEndpoint::Generate { streams } } = endpoint {
        let (headers, model) = (parts.headers, (name, version));
        let generated = generate::generate(ctx, model, headers, body, streams, received_ns);
        return Box::pin(generated).await;
    }
    // Boxed, because these futures are large and would be part of every inference's future.
    let response =
        Box::pin(async { serve(ctx, endpoint, small_body(&endpoint, body).await?).await });
    response.await.unwrap_or_else(|error| failure(&error))
}

/// The groups of the endpoint of a method and a path, for the access check; none if there is no such endpoint.
pub fn groups(method: &Method, path: &str) -> &'static [ApiGroup] {
    Endpoint::from_request(method, path).map_or(&[], |endpoint| endpoint.groups())
}

/// The response to a request that the access check refuses. Its body is drained, because clients read the response only
/// after they have sent it.
pub async fn refuse<B: ReceivedBody>(
    refusal: &AccessRefusal<'_>,
    body: B,
) -> Response<ResponseBody> {
    drain(std::pin::pin!(body), MAX_DRAINED).await;
    let AccessRefusal::MissingHeader(header) = refusal;
    let why = format!("This API is restricted, expecting header '{header}'");
    with_status(StatusCode::FORBIDDEN, json(management_json::error(&why)))
}

/// Longest body of a request that is not inference.
const MAX_SMALL_BODY: u64 = 64 << 10;
/// The same of a load request, which may contain a configuration.
const MAX_LOAD_BODY: u64 = 1 << 20;

async fn small_body<B: ReceivedBody>(endpoint: &Endpoint<'_>, body: B) -> Result<Bytes> {
    let limit = match endpoint {
        Endpoint::Control { load: true, .. } => MAX_LOAD_BODY,
        _ => MAX_SMALL_BODY,
    };
    let too_large = |n| {
        Error::invalid(format!(
            "request body of {n} bytes is too long, this endpoint takes at most {limit}"
        ))
    };
    let spec = BodySpec { limit, ..BodySpec::default() };
    receive(body, spec, too_large).await
}

async fn serve(
    ctx: &Context,
    endpoint: Endpoint<'_>,
    body: Bytes,
) -> Result<Response<ResponseBody>> {
    Ok(match endpoint {
        Endpoint::Live | Endpoint::Ready if !ctx.settings.http_health => {
            with_status(StatusCode::NOT_FOUND, plain(management_json::error("Not Found")))
        }
        Endpoint::Live => {
            health::respond("live", metadata::live(ctx)?, || readiness::not_live(ctx))
        }
        Endpoint::Ready => {
            health::respond("ready", metadata::ready(ctx)?, || readiness::not_ready(ctx))
        }
        Endpoint::Started => {
            health::respond("started", ctx.state.is_started(), || readiness::not_started(ctx))
        }
        Endpoint::Health => json(health::report(ctx)),
        Endpoint::Backends => json(backends::respond(ctx)),
        Endpoint::Loads => json(loads::respond(ctx)),
        Endpoint::Memory => json(memory::respond(ctx).await?),
        Endpoint::Server => json(management_json::server(&metadata::server(ctx))),
        Endpoint::Model { name, version, call } => match call {
            ModelEndpoint::Ready => {
                let ready = metadata::model_ready(ctx, name, version)?;
                health::respond_model(name, ready, || {
                    readiness::model_not_ready(ctx, name, version)
                })
            }
            ModelEndpoint::Metadata => {
                json(management_json::model(&metadata::model(ctx, name, version)?))
            }
            ModelEndpoint::Config => {
                let served = find_ready(ctx, name, version)?;
                json(trtserver_proto::json::model_config(&served.config).into_bytes())
            }
            ModelEndpoint::Statistics => {
                json(management_json::statistics(&statistics::collect(ctx, name, version)?))
            }
            // Handled by `handle`.
            ModelEndpoint::Infer | ModelEndpoint::Generate { .. } => {
                return Err(Error::internal("not an endpoint with a short body"));
            }
        },
        Endpoint::AllStatistics => {
            json(management_json::statistics(&statistics::collect(ctx, "", "")?))
        }
        Endpoint::Trace { model, change } => {
            let known = trace_settings::of(ctx, model)?;
            if change && !is_empty(&body) {
                return Err(trace_settings::cannot_change());
            }
            json(management_json::trace(known))
        }
        Endpoint::Logging { change } => {
            if change {
                crate::log_settings::change(ctx, &log_settings::read(&body)?);
            }
            json(management_json::log(&crate::log_settings::current(ctx)))
        }
        Endpoint::Index { repository } => {
            json(management_json::index(&repository::index(ctx, repository, &body).await?))
        }
        Endpoint::Control { repository, name, load } => {
            repository::control(ctx, repository, name, load, body).await?;
            plain(Vec::new())
        }
        Endpoint::SharedMemory { kind, region, call } => match call {
            RegionAction::Status => json(regions::status(ctx, kind, region)?),
            RegionAction::Register => {
                regions::register(ctx, kind, region, &body).await?;
                plain(Vec::new())
            }
            RegionAction::Unregister => {
                trtserver_wire::regions::unregister(ctx, kind, region)?;
                plain(Vec::new())
            }
        },
    })
}

/// True if there is nothing to change: no body, or an object without members.
fn is_empty(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    body.is_empty()
        || matches!(json::parse(body), Ok(json::Value::Object(object)) if object.members().next().is_none())
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
