//! The call of a stream: `stream_messages` decodes the requests, tonic encodes the responses.

use super::body::GrpcBody;
use super::deadline;
use super::stream_messages::{StreamBody, StreamMessages, StreamRequest};
use super::unary;
use crate::net::context::Context;
use http::{HeaderValue, Request, Response, header};
use std::sync::Arc;
use tokio_stream::Stream;
use tonic::Status;
use tonic::codec::{Codec as _, EncodeBody, SingleMessageCompressionOverride};
use trtserver_proto::codec::{Codec, Encode};
use trtserver_proto::v2::ServerLiveRequest;

/// Responds with the messages that `serve` returns for the requests of a stream and the deadline of the call. Refuses requests that
/// are no gRPC calls.
pub fn respond<B, M, T, S>(
    ctx: &Arc<Context>,
    request: Request<B>,
    serve: impl FnOnce(StreamMessages<M, B>, u64) -> S,
) -> Response<GrpcBody>
where
    B: StreamBody,
    M: StreamRequest,
    T: Encode + Send + 'static,
    S: Stream<Item = Result<T, Status>> + Send + 'static,
{
    if let Err(code) = unary::check_call(request.method(), request.headers()) {
        return unary::no_call(code);
    }
    let (parts, body) = request.into_parts();
    let deadline_ns = deadline::of(&parts.headers);
    let responses = serve(StreamMessages::new(ctx, parts.headers, body), deadline_ns);
    // The type of requests is not used.
    let encoder = Codec::<T, ServerLiveRequest>::default().encoder();
    let plain = SingleMessageCompressionOverride::default();
    let limit = Some(unary::MAX_MESSAGE);
    let body = EncodeBody::new_server(encoder, responses, None, plain, limit);
    let mut response = Response::new(GrpcBody::from(tonic::body::Body::new(body)));
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, grpc);
    response
}
