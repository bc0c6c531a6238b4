//! Requests of a server that restricts who may call what: each is checked before the router serves
//! it as if there were no restriction.

use super::router::{self, HttpRoutes, ResponseFuture};
use http::{Method, Request, Response};
use std::sync::Arc;
use trtserver_frontend_v1 as v1;
use trtserver_frontend_v2 as v2;
use trtserver_metrics::MetricsPage;
use trtserver_wire::access::{
    AccessGate, AccessRefusal, AdmittedRequest, Caller, CallerProtocol, EndpointAccess,
    remove_token,
};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::grpc::call_kind::CallKind;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::request_body::RequestBody;

use crate::rpc_access;

/// Checks and serves a request over HTTP.
pub fn route_guarded_http(
    gate: &AccessGate,
    context: Arc<FrontendContext>,
    page: Option<Arc<MetricsPage>>,
    mut request: Request<RequestBody>,
    received_ns: u64,
) -> ResponseFuture {
    let endpoint = http_access(request.method(), request.uri().path(), page.is_some());
    match admit_http(gate, &context, &request, &endpoint) {
        Ok(AdmittedRequest { context, in_flight }) => Box::pin(async move {
            remove_token(request.headers_mut());
            let mut response =
                router::route_http(HttpRoutes::new(context, page), request, received_ns).await;
            if let Some(in_flight) = in_flight {
                response.body_mut().hold_until_end(in_flight);
            }
            response
        }),
        Err(refusal) => Box::pin(refuse_http(context, refusal, request)),
    }
}

/// Checks a request to the metrics listener.
///
/// # Errors
/// The response of a refusal.
pub fn admit_metrics(
    gate: &AccessGate,
    context: &Arc<FrontendContext>,
    request: Request<RequestBody>,
) -> Result<Request<RequestBody>, ResponseFuture> {
    let endpoint = http_access(request.method(), request.uri().path(), true);
    match admit_http(gate, context, &request, &endpoint) {
        Ok(_) => Ok(request),
        Err(refusal) => Err(Box::pin(refuse_http(Arc::clone(context), refusal, request))),
    }
}

/// Checks a gRPC call by its path and headers.
///
/// # Errors
/// The call is to be refused.
pub fn admit_call(
    gate: &AccessGate,
    context: &FrontendContext,
    kind: CallKind,
    request: &Request<RequestBody>,
) -> Result<AdmittedRequest, AccessRefusal> {
    let endpoint = rpc_access::access_of_path(request.uri().path());
    let is_stream = matches!(kind, CallKind::StreamV1 | CallKind::Stream2018 | CallKind::StreamV2);
    let caller = caller_of(request, CallerProtocol::Grpc);
    // Each request of a stream is counted by itself.
    gate.admit(context, &caller, &endpoint, !is_stream)
}

fn admit_http(
    gate: &AccessGate,
    context: &FrontendContext,
    request: &Request<RequestBody>,
    endpoint: &EndpointAccess<'_>,
) -> Result<AdmittedRequest, AccessRefusal> {
    gate.admit(context, &caller_of(request, CallerProtocol::Http), endpoint, true)
}

fn caller_of(request: &Request<RequestBody>, protocol: CallerProtocol) -> Caller<'_> {
    Caller { protocol, headers: request.headers(), peer: request.body().connection_peer() }
}

/// The endpoint that the router picks for a path.
fn http_access<'a>(method: &Method, path: &'a str, has_page: bool) -> EndpointAccess<'a> {
    if path.starts_with("/v2") {
        v2::http::access(method, path)
    } else if router::is_v1_path(path) {
        v1::http::access(path)
    } else if has_page && router::is_metrics_path(path) {
        EndpointAccess::METRICS
    } else {
        EndpointAccess::NONE
    }
}

async fn refuse_http(
    context: Arc<FrontendContext>,
    refusal: AccessRefusal,
    request: Request<RequestBody>,
) -> Response<ResponseBody> {
    match router::is_v1_path(request.uri().path()) {
        true => v1::http::refuse(&context, &refusal, request.into_body()).await,
        false => v2::http::refuse(&refusal, request.into_body()).await,
    }
}
