//! v1 over HTTP: everything under `/api` (docs/protocol/v1.md §3).

mod endpoint;
mod infer;
mod response;

use crate::regions::RegionControl;
use crate::{control, counted_async, health, regions, request_id, status, status_1804};
use bytes::Bytes;
use endpoint::{ControlEndpoint, Endpoint};
use http::header::{ACCEPT, HeaderValue};
use http::{Request, Response, StatusCode};
use prost::Message;
use response::{BINARY, JSON, TEXT, V1Response, empty_response};
use std::borrow::Cow;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_config::ServerSettings;
use trtserver_proto::schema::Described;
use trtserver_proto::v1::SharedMemoryStatus;
use trtserver_proto::{json, text};
use trtserver_request::shared_memory::HANDLE_BYTES;
use trtserver_wire::access::{AccessRefusal, CallerProtocol, EndpointAccess, audit};
use trtserver_wire::connections::ConnectionPeer;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::http::collect::{BodySpec, ReceivedBody};
use trtserver_wire::http::drain::drain_body;
use trtserver_wire::http::receive::{MAX_DRAINED, receive_body};
use trtserver_wire::shared_memory::CudaMemory;

/// The response in place of one that cannot be sent.
pub fn error_response(ctx: &FrontendContext, error: &Error) -> Response<ResponseBody> {
    V1Response::failure(&ctx.settings, error, request_id(ctx), BINARY).into_response()
}

/// Serves a request whose path begins with `/api`; `received_ns` is when its head was received.
pub async fn handle_request<B: ReceivedBody>(
    ctx: &Arc<FrontendContext>,
    request: Request<B>,
    received_ns: u64,
) -> Response<ResponseBody> {
    let uri = request.uri().clone();
    let Some(endpoint) = Endpoint::from_path(uri.path()) else {
        return empty_response(StatusCode::BAD_REQUEST);
    };
    let allowed = endpoint.method() == *request.method();
    let refused = || empty_response(StatusCode::METHOD_NOT_ALLOWED);
    let call = match endpoint {
        Endpoint::Infer { model, version } if allowed => {
            return infer::serve_infer(ctx, model, version, request, received_ns)
                .await
                .into_response();
        }
        Endpoint::Infer { .. } => return refused(),
        Endpoint::Control(call) => call,
    };
    let format = endpoint::query_value(uri.query(), "format");
    let audited = call.access().control.map(|_| request.body().connection_peer().clone());
    let form = MessageFormat::from_request(format, request.headers().get(ACCEPT), &ctx.settings);
    if matches!(call, ControlEndpoint::Health(_)) && !ctx.settings.http_health {
        return empty_response(StatusCode::BAD_REQUEST);
    }
    // Boxed: the futures of inference have no space for it.
    let response = Box::pin(async {
        if !allowed {
            return refused();
        }
        let ControlEndpoint::Regions(RegionControl::RegisterCuda { name, memory }) = call else {
            return control(ctx, call, uri.query(), form, audited).await.into_response();
        };
        match cuda_handle(request.into_body()).await {
            Ok(handle) => {
                let memory = CudaMemory { handle: &handle, ..memory };
                let call = ControlEndpoint::Regions(RegionControl::RegisterCuda { name, memory });
                control(ctx, call, uri.query(), form, audited).await.into_response()
            }
            Err(e) => V1Response::failure(&ctx.settings, &e, request_id(ctx), TEXT).into_response(),
        }
    });
    let endpoint = match call {
        ControlEndpoint::Health(_) => &ctx.endpoints.health,
        ControlEndpoint::Status(_) => &ctx.endpoints.status,
        ControlEndpoint::Profile => &ctx.endpoints.profile,
        ControlEndpoint::Model(..) => &ctx.endpoints.model_control,
        ControlEndpoint::Regions(_) => &ctx.endpoints.shm_control,
        ControlEndpoint::Index => &ctx.endpoints.repository,
    };
    counted_async(endpoint, received_ns, response).await
}

/// The endpoint of a path as the access check sees it.
pub fn access(path: &str) -> EndpointAccess<'_> {
    Endpoint::from_path(path).map_or(EndpointAccess::NONE, |endpoint| endpoint.access())
}

/// The response to a request that the access check refuses. Its body is drained, because clients
/// read the response only after they have sent it.
pub async fn refuse<B: ReceivedBody>(
    ctx: &FrontendContext,
    refusal: &AccessRefusal,
    body: B,
) -> Response<ResponseBody> {
    drain_body(std::pin::pin!(body), MAX_DRAINED).await;
    let why = Error::unavailable(refusal.message(CallerProtocol::Http));
    let mut response = V1Response::failure(&ctx.settings, &why, 0, TEXT);
    response.code = refusal.http_status();
    let mut response = response.into_response();
    refusal.add_headers(response.headers_mut());
    response
}

/// The body of a registration of GPU memory. One of another size is refused with the registration.
async fn cuda_handle<B: ReceivedBody>(body: B) -> Result<Bytes> {
    let spec = BodySpec { limit: 2 * HANDLE_BYTES as u64, ..BodySpec::default() };
    let too_large =
        |n| Error::invalid(format!("a CUDA shared-memory handle of {n} bytes is too long"));
    receive_body(body, spec, too_large).await
}

/// Serves all endpoints but inference. `audited`: the client of a call that changes something.
async fn control(
    ctx: &FrontendContext,
    call: ControlEndpoint<'_>,
    query: Option<&str>,
    form: MessageFormat,
    audited: Option<ConnectionPeer>,
) -> V1Response {
    let nothing = |result: Result<()>| result.map(|()| (TEXT, Vec::new()));
    // Profiling requires a server that is ready, everything else one that does not drain.
    let admitted = call != ControlEndpoint::Profile || ctx.require_ready().is_ok();
    let id = if admitted { request_id(ctx) } else { 0 };
    let result = match call {
        ControlEndpoint::Health(mode) => {
            let health = health::check_health(ctx, mode);
            if health == Ok(false) {
                // Not healthy is a successful request with an HTTP status of failure.
                let mut response = V1Response::success(&ctx.settings, id, TEXT);
                response.code = StatusCode::BAD_REQUEST;
                return response;
            }
            nothing(health.map(|_| ()))
        }
        ControlEndpoint::Status(model) => status::report_status(ctx, model).map(|mut status| {
            if form == MessageFormat::Text || ctx.settings.before_v1_13 {
                status::without_later_fields(ctx, &mut status);
            }
            match ctx.settings.emulate_18_04 {
                true => form.write(&status_1804::convert_status(status)),
                false => form.write(&status),
            }
        }),
        ControlEndpoint::Profile => {
            let command = endpoint::query_value(query, "cmd").unwrap_or_default();
            nothing(control::control_profiler(ctx, &command).await)
        }
        ControlEndpoint::Model(name, change) => {
            nothing(control::control_model(ctx, name, change).await)
        }
        ControlEndpoint::Regions(call) => {
            regions::control_region(ctx, call).await.map(|regions| match regions {
                Some(shared_memory_region) => {
                    form.write(&SharedMemoryStatus { shared_memory_region })
                }
                None => (TEXT, Vec::new()),
            })
        }
        ControlEndpoint::Index => {
            control::repository_index(ctx).await.map(|index| form.write(&index))
        }
    };
    if let (Some(peer), Some(action)) = (audited, call.access().control) {
        let failure = result.as_ref().err().map(|error| &*error.message);
        audit::log_control(ctx.caller.as_deref(), &peer, &action, failure);
    }
    match result {
        Ok((content_type, body)) => {
            V1Response::success(&ctx.settings, id, content_type).with_body(body)
        }
        Err(error) => V1Response::failure(&ctx.settings, &error, id, TEXT),
    }
}

/// How a message is written in a body.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MessageFormat {
    Text,
    Binary,
    Json,
    /// With names in lowerCamelCase, as releases before v1.13 wrote them.
    CamelCaseJson,
}

impl MessageFormat {
    /// The query parameter `format` takes precedence over `Accept`.
    fn from_request(
        format: Option<Cow<'_, str>>,
        accept: Option<&HeaderValue>,
        settings: &ServerSettings,
    ) -> Self {
        let json = match settings.before_v1_13 {
            true => MessageFormat::CamelCaseJson,
            false => MessageFormat::Json,
        };
        match format.as_deref() {
            Some("binary") => MessageFormat::Binary,
            Some("json") => json,
            Some(_) => MessageFormat::Text,
            None if accept.is_some_and(|a| a == "application/json") => json,
            None => MessageFormat::Text,
        }
    }

    fn write<M: Described>(self, message: &M) -> (HeaderValue, Vec<u8>) {
        match self {
            MessageFormat::Text => (TEXT, text::print(message).into_bytes()),
            MessageFormat::Binary => (BINARY, Message::encode_to_vec(message)),
            MessageFormat::Json => (JSON, json::message(message).into_bytes()),
            MessageFormat::CamelCaseJson => (JSON, json::camel_case(message).into_bytes()),
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
#[cfg(test)]
mod wire_tests;
