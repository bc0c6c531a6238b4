//! v2 over gRPC: `inference.GRPCInferenceService`, and the standard health check.

pub mod fallback;
pub mod fast_path;
mod infer;
mod input;
mod response;
mod service;
mod shared_memory;
mod stream;

pub use infer::serve_infer;
pub use service::{Health, Service, grpc_services};
pub use stream::serve_stream_infer;

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
