//! v1 over gRPC: `nvidia.inferenceserver.GRPCService` (docs/protocol/v1.md §4).
//!
//! The gRPC status is always OK; the result of a call is in `request_status`.

mod infer; // unary inference, without tonic
mod infer_stream; // InferStream of 2018
pub mod region_request; // shared-memory requests of all releases
mod service; // the other endpoints, through tonic
mod stream; // StreamInfer

pub use infer::infer;
pub use infer_stream::infer_stream;
pub use stream::stream;

use crate::net::context::Context;
use crate::net::grpc::unary::{Limits, MAX_MESSAGE};
use std::sync::Arc;
use tonic::codec::CompressionEncoding;
use trtserver_proto::v1::grpc_service_server::GrpcServiceServer;

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
