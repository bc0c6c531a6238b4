//! v1 over gRPC: `nvidia.inferenceserver.GRPCService` (contract/v1 §4).
//!
//! gRPC itself always says OK; how a call ended is in `request_status`.

mod infer; // one request, one answer
mod service; // everything that is not unary inference
mod stream; // requests and answers of one stream

pub use infer::answer as infer;

use crate::net::context::Context;
use crate::net::grpc::unary::MAX_MESSAGE;
use std::sync::Arc;
use tonic::codec::CompressionEncoding;
use trtserver_proto::v1::grpc_service_server::GrpcServiceServer;

/// Everything but unary inference, which [`infer`] answers faster. The service has that too, so it is whole.
pub fn service(ctx: Arc<Context>) -> GrpcServiceServer<service::Service> {
    GrpcServiceServer::new(service::Service::new(ctx))
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
