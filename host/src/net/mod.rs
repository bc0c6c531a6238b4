//! HTTP and gRPC, both protocol generations, over one protocol-neutral request.
pub mod context; // what every front end works with
pub mod door; // which front end answers a path
pub mod grpc; // gRPC front ends
pub mod http; // HTTP front ends
pub mod listener; // sockets and connections
