//! `inference.GRPCInferenceService` and the standard health check.

mod fast_path; // hand-written parser of ordinary ModelInferRequests
mod infer; // the hot path: ModelInfer by hand
mod input; // tensors of a request: raw, or typed contents
mod message; // requests in, responses out
mod service; // the other calls, through tonic
mod stream; // ModelStreamInfer

pub use infer::infer;
pub use service::{Health, Service, services};

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
