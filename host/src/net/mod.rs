//! HTTP and gRPC frontends of both protocol generations (v1, v2), over one protocol-neutral request.

pub mod bind; // opens the sockets of listeners
mod chunks; // response bodies: copied pieces and zero-copy chunks
mod compression; // gzip and deflate
pub mod connections; // open connections: limit, timeouts, orderly end
pub mod context; // state that all frontends share
pub mod decode_workers; // threads for heavy decoding and encoding
pub mod disconnect; // detects HTTP/1 clients that disconnect
pub mod grpc; // gRPC frontends
pub mod http; // HTTP frontends
pub mod listener; // accepts and serves connections
mod request_id; // X-Request-Id, in responses and log lines
mod restricted; // endpoints that require a header
pub mod router; // picks the frontend and endpoint of a path
pub mod shared_memory; // parts of regions that requests name
pub mod sink; // response sinks of connections, cancellation on drop
mod socket; // TCP and Unix sockets as one type
pub mod status_code; // HTTP and gRPC status of a v2 error
mod task; // tasks of connections and calls, inline completion
pub mod threads; // network threads: the tokio runtime
mod unix_socket; // the file of a listening Unix socket
pub mod unread; // responses that clients have not read, limited
pub mod v1; // what HTTP and gRPC share in v1
pub mod v2; // what HTTP and gRPC share in v2
mod yields; // a busy network thread yields its processor

#[cfg(any(test, feature = "fuzzing"))]
pub mod testing; // a server whose models execute on threads
