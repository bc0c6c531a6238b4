//! gRPC calls that tonic serves, which are all but inference: checked once their message has
//! arrived, served, and entered in the audit lines if they change something.

use super::{reflection, rpc_access};
use http::{Request, Response};
use std::convert::Infallible;
use std::sync::Arc;
use tonic::service::Routes;
use tonic::{Code, Status};
use tower::Service;
use trtserver_wire::access::audit::{self, ControlOutcome};
use trtserver_wire::access::{CallerGrant, EndpointAccess};
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::unary;
use trtserver_wire::request_body::RequestBody;

/// Serves a call. `caller`: its name, which must be allowed to do what the message says.
pub async fn serve_control(
    mut routes: Routes,
    mut request: Request<RequestBody>,
    caller: Option<Arc<CallerGrant>>,
) -> Response<GrpcBody> {
    let uri = request.uri().clone();
    // The requests of reflection are a stream.
    let is_reflection = uri.path().starts_with(reflection::PATH);
    if is_reflection {
        request.body_mut().allow_pauses();
    }
    // tonic would serve some of them, unchecked.
    if let Err(code) = unary::check_call(request.method(), request.headers()) {
        return unary::no_call(code);
    }
    if is_reflection {
        return into_response(routes.call(request).await);
    }
    let may_control = rpc_access::access_of_path(uri.path()).is_for_control_listener();
    let peer = may_control.then(|| request.body().connection_peer().clone());
    let (request, message) = match unary::receive_control(request).await {
        Ok(received) => received,
        Err(status) => return unary::refuse_call(&status),
    };
    let endpoint = match (rpc_access::access_of_message(uri.path(), &message), &caller) {
        (Ok(endpoint), _) => endpoint,
        // The service refuses it.
        (Err(_), None) => EndpointAccess::NONE,
        (Err(why), Some(_)) => {
            let why = format!("failed to decode Protobuf message: {why}");
            return unary::refuse_call(&Status::internal(why));
        }
    };
    let audited = peer.as_ref().zip(endpoint.control);
    if let Some(caller) = &caller
        && let Err(refusal) = caller.authorize(&endpoint)
    {
        caller.count(&refusal);
        if let Some((peer, action)) = &audited {
            audit::log_refused(&caller.stats, peer, action, &refusal);
        }
        return unary::refuse_call(&refusal.grpc_status());
    }
    let response = into_response(routes.call(request).await);
    if let Some((peer, action)) = &audited {
        let failure = failure_of(&response);
        audit::log_control(caller.as_deref(), peer, action, failure.as_deref());
    }
    response
}

fn into_response(served: Result<Response<tonic::body::Body>, Infallible>) -> Response<GrpcBody> {
    match served {
        Ok(response) => response.map(GrpcBody::from),
        Err(never) => match never {},
    }
}

/// Why a call failed: v1 says so in its message, for which it left a note.
fn failure_of(response: &Response<GrpcBody>) -> Option<String> {
    if let Some(ControlOutcome { failure }) = response.extensions().get() {
        return failure.clone();
    }
    let status = Status::from_header_map(response.headers())?;
    (status.code() != Code::Ok).then(|| status.message().to_owned())
}
