//! v1 over gRPC: `nvidia.inferenceserver.GRPCService` (docs/protocol/v1.md §4).
//!
//! The gRPC status is always OK; the result of a call is in `request_status`.

mod infer;
mod infer_stream;
pub mod region_request;
mod service;
mod stream;

pub use infer::serve_infer;
pub use infer_stream::infer_stream;
pub use stream::serve_stream_infer;

use std::sync::Arc;
use tonic::codec::CompressionEncoding;
use trtserver_proto::v1::grpc_service_server::GrpcServiceServer;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::grpc::unary::{MAX_MESSAGE, MessageLimits};

/// All endpoints but inference, which [`infer`], [`serve_stream_infer()`] and [`infer_stream()`]
/// serve.
pub fn grpc_service(ctx: Arc<FrontendContext>) -> GrpcServiceServer<service::Service> {
    GrpcServiceServer::new(service::Service::new(ctx))
        .max_decoding_message_size(MessageLimits::CONTROL.expanded)
        .max_encoding_message_size(MAX_MESSAGE)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
