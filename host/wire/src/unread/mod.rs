//! Unread responses: bytes that were sent to a client and that it has not read, limited per stream,
//! per connection (`--max-unread-per-stream`, `--max-unread-per-connection`), and with all other
//! memory of requests (`--max-request-memory`).
//!
//! A response of a stream is counted from when the backend sends it until it is encoded, every
//! other one from when it is encoded; the chunks of a body are counted until the socket takes them.

mod connection;
mod stream;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod testing;

pub use connection::ConnectionUnread;
pub use stream::StreamUnread;

use trtserver_request::InferResponse;
use trtserver_request::unread::RESPONSE_OVERHEAD;

/// Smaller responses are not counted on a connection: their number is limited by that of its calls.
pub const MIN_COUNTED: usize = 4 << 10;
/// What `response` counts.
pub fn response_size(response: &InferResponse) -> usize {
    response.byte_size() + RESPONSE_OVERHEAD
}
