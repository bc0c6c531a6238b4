//! HTTP and gRPC, both protocol generations, over one protocol-neutral request.

mod chunks; // response bodies: copied pieces and zero-copy chunks
mod compression; // gzip and deflate
pub mod context; // what every front end works with
pub mod disconnect; // detects HTTP/1 clients that disconnect
pub mod grpc; // gRPC front ends
pub mod http; // HTTP front ends
pub mod listener; // sockets and connections
pub mod repoll; // bounded re-polling of a connection that wakes itself
pub mod router; // picks the frontend and endpoint of a path
pub mod sink; // where responses go on their way to a connection
pub mod status_code; // error codes as v2 shows them
pub mod threads; // the threads that do all this
pub mod v1; // what both wires of v1 share
pub mod v2; // what both wires of v2 share
