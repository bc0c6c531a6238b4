//! v1 (docs/protocol/v1.md), independent of the wire; the HTTP and gRPC frontends are thin layers on top.

mod config; // the configuration of a model as v1 knows it
pub mod control; // profile, model control, repository index
pub mod header_text; // NV-Status and NV-InferResponse
pub mod health; // live, ready
pub mod infer; // one inference request, from look-up to response
pub mod input_data; // input bytes checked against the request header
pub mod legacy; // message forms of releases up to v0.10
pub mod regions; // shared memory: registering, unregistering, status
pub mod request; // checks a request header: the error ladder
pub mod request_status; // RequestStatus of a response
pub mod response; // response header and raw outputs
pub mod status; // ServerStatus
pub mod status_1804; // its layout of release 18.04

use crate::clock::now_ns;
use crate::net::context::{Context, EndpointSpan};

/// The id of a new request: 0, which is not sent, while the server drains.
pub fn request_id(ctx: &Context) -> u64 {
    if ctx.refuse_when_exiting().is_ok() { ctx.state.next_request_id() } else { 0 }
}

/// Counts a request to an endpoint, failed or not, once its response is ready.
pub fn counted<T>(endpoint: &EndpointSpan, received_ns: u64, call: impl FnOnce() -> T) -> T {
    let response = call();
    endpoint.add(now_ns().saturating_sub(received_ns));
    response
}

/// The same for an async function.
pub async fn counted_async<T>(
    endpoint: &EndpointSpan,
    received_ns: u64,
    call: impl Future<Output = T>,
) -> T {
    let response = call.await;
    endpoint.add(now_ns().saturating_sub(received_ns));
    response
}

#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of the server")]
pub mod testing; // a server with two models
