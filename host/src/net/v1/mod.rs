//! What v1 answers, whatever wire the call came by (contract/v1). HTTP and gRPC are thin skins over this.

pub mod control; // profile, model control, shared memory, repository index
pub mod header_text; // NV-Status and NV-InferResponse
pub mod health; // live, ready
pub mod infer; // one inference request, from look-up to response
pub mod input_data; // input bytes checked against the request header
pub mod legacy; // message forms of releases up to v0.10
pub mod request; // the error ladder: from a request's header to what it asks for
pub mod request_status; // RequestStatus of a response
pub mod response; // outputs to response header and raw parts
pub mod status; // ServerStatus

use crate::clock::now_ns;
use crate::net::context::{Context, EndpointSpan};

/// The id of a call that is handled: 0, which is left out, while the server is on its way out.
pub fn request_id(ctx: &Context) -> u64 {
    if ctx.refuse_when_exiting().is_ok() { ctx.state.next_request_id() } else { 0 }
}

/// Counts a call of an endpoint, whatever comes of it, once its answer is made.
pub fn counted<T>(endpoint: &EndpointSpan, received_ns: u64, call: impl FnOnce() -> T) -> T {
    let answer = call();
    endpoint.add(now_ns().saturating_sub(received_ns));
    answer
}

/// The same for a call that has to wait.
pub async fn counted_later<T>(
    endpoint: &EndpointSpan,
    received_ns: u64,
    call: impl Future<Output = T>,
) -> T {
    let answer = call.await;
    endpoint.add(now_ns().saturating_sub(received_ns));
    answer
}

#[cfg(test)]
pub mod testing; // a context with one model that answers by itself
