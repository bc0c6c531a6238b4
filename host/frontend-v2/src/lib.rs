//! The Open Inference Protocol with Triton's extensions (docs/protocol/v2.md).
//!
//! The modules at the root look up models, check and submit requests, and build the responses of
//! the other endpoints as protobuf messages, which [`http`] prints as JSON and [`grpc`] sends.

#![forbid(unsafe_code)]

pub mod classes;
pub mod forwarded_headers;
pub mod grpc;
pub mod http;
mod limiter_statistics;
pub mod log_settings;
pub mod lookup;
pub mod metadata;
pub mod parameters;
pub mod readiness;
pub mod repository;
pub mod request;
pub mod shared_memory;
pub mod statistics;
pub mod trace_settings;

pub use forwarded_headers::ForwardedHeaders;
pub use lookup::{find_for_inference, find_ready, require_unary};
pub use parameters::RequestParameters;
pub use request::{UncheckedRequest, count_refused};
pub use shared_memory::RequestRegions;
pub use trtserver_wire::regions::SHARED_MEMORY_DISABLED;
