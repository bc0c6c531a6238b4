//! v2 over gRPC: `inference.GRPCInferenceService`, and the standard health check.

pub(crate) mod fallback; // every other ModelInferRequest, decoded by prost
pub(crate) mod fast_path; // hand-written parser of ordinary ModelInferRequests
mod infer; // ModelInfer, without tonic
mod input; // bytes of an input: raw, or typed contents
mod response; // encodes ModelInferResponse
mod service; // the other endpoints, through tonic
mod shared_memory; // parameters of tensors in client shared memory
mod stream; // ModelStreamInfer

pub use infer::infer;
pub use service::{Health, Service, services};
pub use stream::stream;

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
