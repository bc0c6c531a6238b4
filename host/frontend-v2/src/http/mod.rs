//! v2 over HTTP: everything under `/v2`.

mod backends;
mod base64_text;
mod description;
mod endpoint;
mod generate;
mod health;
mod infer;
mod infer_request;
mod infer_response;
mod input;
pub mod json;
mod load_progress;
mod log_settings;
mod management_json;
mod memory;
mod parameters;
mod rate_limiter;
mod regions;
mod repeated_head;
mod repository;
mod requests;
mod response;
mod shared_memory;
mod status;
mod trace_change;

pub use response::error_response;

use crate::{find_ready, metadata, readiness, statistics, trace_settings};
use bytes::Bytes;
use endpoint::{Endpoint, ModelEndpoint, RegionAction};
use health::HealthBody;
use http::{Method, Request, Response, StatusCode};
use response::{json_response, text_response, with_status};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_wire::access::{AccessRefusal, CallerProtocol, EndpointAccess, audit};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::http::collect::{BodySpec, ReceivedBody};
use trtserver_wire::http::drain::drain_body;
use trtserver_wire::http::receive::{MAX_DRAINED, receive_body};

/// Serves a request for a path under `/v2`. Dropping the future cancels an inference request.
pub async fn handle_request<B>(
    ctx: &Arc<FrontendContext>,
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
            let text = management_json::error_json(status.canonical_reason().unwrap_or_default());
            return with_status(
                status,
                if is_json { json_response(text) } else { text_response(text) },
            );
        }
    };
    if let Endpoint::Model { name, version, call: ModelEndpoint::Infer } = endpoint {
        return infer::serve_infer(ctx, (name, version), parts.headers, body, received_ns).await;
    }
    if let Endpoint::Model { name, version, call: ModelEndpoint::Generate { streams } } = endpoint {
        let (headers, model) = (parts.headers, (name, version));
        let generated = generate::serve_generate(ctx, model, headers, body, streams, received_ns);
        return Box::pin(generated).await;
    }
    if endpoint == Endpoint::StatusEvents {
        return Box::pin(status::serve_events(Arc::clone(ctx), body)).await;
    }
    // Boxed, because these futures are large and would be part of every inference's future.
    let health = HealthBody::from_headers(&parts.headers);
    let audited = endpoint.access().control.map(|action| (action, body.connection_peer().clone()));
    let response = Box::pin(async {
        let body = small_body(&endpoint, body).await?;
        serve_endpoint(ctx, endpoint, (health, parts.uri.query()), body).await
    });
    let response = response.await;
    if let Some((action, peer)) = audited {
        let failure = response.as_ref().err().map(|error| &*error.message);
        audit::log_control(ctx.caller.as_deref(), &peer, &action, failure);
    }
    response.unwrap_or_else(|error| error_response(&error))
}

/// The endpoint of a method and a path as the access check sees it.
pub fn access<'a>(method: &Method, path: &'a str) -> EndpointAccess<'a> {
    Endpoint::from_request(method, path).map_or(EndpointAccess::NONE, |endpoint| endpoint.access())
}

/// The response to a request that the access check refuses. Its body is drained, because clients
/// read the response only after they have sent it.
pub async fn refuse<B: ReceivedBody>(refusal: &AccessRefusal, body: B) -> Response<ResponseBody> {
    drain_body(std::pin::pin!(body), MAX_DRAINED).await;
    let why = management_json::error_json(&refusal.message(CallerProtocol::Http));
    let mut response = with_status(refusal.http_status(), json_response(why));
    refusal.add_headers(response.headers_mut());
    response
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
    receive_body(body, spec, too_large).await
}

/// The body of a request that needs none.
async fn small_body_of<B: ReceivedBody>(body: B) -> Result<Bytes> {
    small_body(&Endpoint::Status, body).await
}

async fn serve_endpoint(
    ctx: &FrontendContext,
    endpoint: Endpoint<'_>,
    (health, query): (HealthBody, Option<&str>),
    body: Bytes,
) -> Result<Response<ResponseBody>> {
    Ok(match endpoint {
        Endpoint::Live | Endpoint::Ready if !ctx.settings.http_health => with_status(
            StatusCode::NOT_FOUND,
            text_response(management_json::error_json("Not Found")),
        ),
        Endpoint::Live => {
            health::health_response(health, "live", metadata::is_server_live(ctx)?, || {
                readiness::not_live(ctx)
            })
        }
        Endpoint::Ready => {
            health::health_response(health, "ready", metadata::is_server_ready(ctx)?, || {
                readiness::not_ready(ctx)
            })
        }
        Endpoint::Started => {
            health::health_response(HealthBody::Json, "started", ctx.state.is_started(), || {
                readiness::not_started(ctx)
            })
        }
        Endpoint::Description => json_response(description::describe_server(ctx)?),
        Endpoint::Health => json_response(health::health_report(ctx)),
        Endpoint::Backends => json_response(backends::backends_json(ctx)),
        Endpoint::Status => json_response(status::status_json(ctx).await?),
        // Handled by `handle_request`.
        Endpoint::StatusEvents => return Err(Error::internal("not an endpoint with one response")),
        Endpoint::Changes => json_response(status::changes_json(ctx, query)?),
        Endpoint::Log => json_response(status::log_json(ctx, query)?),
        Endpoint::Configuration { name, version } => {
            json_response(status::configuration_json(ctx, name, version)?)
        }
        Endpoint::Loads => json_response(load_progress::load_progress_json(ctx)),
        Endpoint::Requests => json_response(requests::requests_json(ctx)),
        Endpoint::Request { id } => json_response(requests::request_json(ctx, id)?),
        Endpoint::Memory => json_response(memory::memory_json(ctx).await?),
        Endpoint::RateLimiter => json_response(rate_limiter::rate_limiter_json(ctx)),
        Endpoint::Server => {
            json_response(management_json::server_metadata_json(&metadata::server_metadata(ctx)))
        }
        Endpoint::Models => {
            json_response(management_json::model_names_json(&metadata::served_models(ctx)))
        }
        Endpoint::Model { name, version, call } => match call {
            ModelEndpoint::Ready => {
                let ready = metadata::model_ready(ctx, name, version)?;
                health::respond_model(health, name, ready, || {
                    readiness::model_not_ready(ctx, name, version)
                })
            }
            ModelEndpoint::Metadata => json_response(management_json::model_metadata_json(
                &metadata::model_metadata(ctx, name, version)?,
            )),
            ModelEndpoint::Description => {
                json_response(description::describe_model(ctx, name, version)?)
            }
            ModelEndpoint::Config => {
                let served = find_ready(ctx, name, version)?;
                json_response(trtserver_proto::json::model_config(&served.config).into_bytes())
            }
            ModelEndpoint::Statistics => json_response(management_json::statistics_json(
                &statistics::collect_statistics(ctx, name, version)?,
            )),
            // Handled by `handle`.
            ModelEndpoint::Infer | ModelEndpoint::Generate { .. } => {
                return Err(Error::internal("not an endpoint with a short body"));
            }
        },
        Endpoint::AllStatistics => json_response(management_json::statistics_json(
            &statistics::collect_statistics(ctx, "", "")?,
        )),
        Endpoint::Trace { model, change } => {
            let mut settings = trace_settings::read_trace_settings(ctx, model)?;
            if change {
                trace_change::read_trace_change(&body)?.apply(ctx, model)?;
                settings = trace_settings::read_trace_settings(ctx, model)?;
            }
            json_response(management_json::trace_settings_json(&settings))
        }
        Endpoint::Logging { change } => {
            if change {
                crate::log_settings::change_log_settings(
                    ctx,
                    &log_settings::read_log_settings(&body)?,
                );
            }
            json_response(management_json::log_settings_json(
                &crate::log_settings::current_log_settings(ctx),
            ))
        }
        Endpoint::Index { repository } => json_response(management_json::repository_index_json(
            &repository::list_repository(ctx, repository, &body).await?,
        )),
        Endpoint::Control { repository, name, load } => {
            repository::control_model(ctx, repository, name, load, body).await?;
            text_response(Vec::new())
        }
        Endpoint::SharedMemory { kind, region, call } => match call {
            RegionAction::Status => json_response(regions::region_status_json(ctx, kind, region)?),
            RegionAction::Register => {
                regions::register_region(ctx, kind, region, &body).await?;
                text_response(Vec::new())
            }
            RegionAction::Unregister => {
                trtserver_wire::regions::unregister_regions(ctx, kind, region)?;
                text_response(Vec::new())
            }
        },
    })
}

/// True if there is nothing to change: no body, or an object without members.
#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
