//! Unary gRPC calls without tonic: tensors are copied at most once when they are received, and sent zero-copy.

mod control; // messages of the calls that tonic serves
mod message_buf; // a received message as chunks
mod receive; // receives and decodes a message
mod receiver; // gives large fields blocks of their own while they arrive
mod respond; // builds responses
mod sizes; // limits of messages

pub use control::receive_control;
pub use message_buf::MessageBuf;
pub use receive::{Limits, decode, is_heavy, open, receive, reserve_decoded, too_long};
pub use receiver::MessageReceiver;
pub use respond::{refuse, respond, respond_with};
pub use sizes::{MAX_MESSAGE, MIN_IN_ARENA, PREFIX};

use http::{HeaderMap, HeaderValue, header};

/// Refuses requests that are no gRPC calls.
pub fn check_call(method: &http::Method, headers: &HeaderMap) -> Result<(), http::StatusCode> {
    let content = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if method != http::Method::POST {
        return Err(http::StatusCode::METHOD_NOT_ALLOWED);
    }
    if !content.starts_with(b"application/grpc") || content.starts_with(b"application/grpc-web") {
        return Err(http::StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    Ok(())
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
