//! v1 over gRPC: `nvidia.inferenceserver.GRPCService` (docs/protocol/v1.md §4).
//!
//! The gRPC status is always OK; the result of a call is in `request_status`.

mod infer;
mod infer_stream;
pub mod region_request;
mod service;
mod stream;

pub use infer::infer;
pub use infer_stream::infer_stream;
pub use stream::stream;

use std::sync::Arc;
use tonic::codec::CompressionEncoding;
use trtserver_proto::v1::grpc_service_server::GrpcServiceServer;
use trtserver_wire::context::Context;
use trtserver_wire::grpc::unary::{Limits, MAX_MESSAGE};

/// All endpoints but inference, which [`infer`], [`stream()`] and [`infer_stream()`] serve.
pub fn service(ctx: Arc<Context>) -> GrpcServiceServer<service::Service> {
    GrpcServiceServer::new(service::Service::new(ctx))
        .max_decoding_message_size(Limits::CONTROL.expanded)
        .max_encoding_message_size(MAX_MESSAGE)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
