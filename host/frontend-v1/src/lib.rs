//! The protocol of TensorRT Inference Server 0.12 and v1.x (docs/protocol/v1.md).
//!
//! The modules at the root build requests and responses as protobuf messages, whatever the wire;
//! [`http`] and [`grpc`] are thin layers on top.

#![forbid(unsafe_code)]

mod config;
pub mod control;
pub mod grpc;
pub mod header_text;
pub mod health;
pub mod http;
pub mod infer;
pub mod input_data;
pub mod legacy;
pub mod regions;
pub mod request;
pub mod request_status;
pub mod response;
pub mod status;
pub mod status_1804;

use trtserver_base::clock::now_ns;
use trtserver_wire::context::{EndpointSpan, FrontendContext};

/// The id of a new request: 0, which is not sent, while the server drains.
pub fn request_id(ctx: &FrontendContext) -> u64 {
    if ctx.refuse_when_exiting().is_ok() { ctx.state.next_request_id() } else { 0 }
}

/// Counts a request to an endpoint, failed or not, once its response is ready.
pub fn count_endpoint<T>(endpoint: &EndpointSpan, received_ns: u64, call: impl FnOnce() -> T) -> T {
    let response = call();
    endpoint.add(now_ns().saturating_sub(received_ns));
    response
}

/// Counts the call of an async function.
pub async fn counted_async<T>(
    endpoint: &EndpointSpan,
    received_ns: u64,
    call: impl Future<Output = T>,
) -> T {
    let response = call.await;
    endpoint.add(now_ns().saturating_sub(received_ns));
    response
}

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of the server")]
pub mod testing;
