//! The call of a stream: `stream_messages` decodes the requests, tonic encodes the responses.

use super::body::GrpcBody;
use super::compression::{CompressedStream, Compression};
use super::deadline;
use super::stream_messages::{StreamBody, StreamMessages, StreamRequest};
use super::unary;
use crate::net::context::Context;
use crate::net::http::body::BoxError;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use std::sync::Arc;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use tonic::codec::{Codec as _, EncodeBody, SingleMessageCompressionOverride};
use trtserver_proto::codec::{Codec, Encode, Encoded};
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
    let (requests, deadline_ns) = match requests(ctx, request) {
        Ok(requests) => requests,
        Err(code) => return unary::no_call(code),
    };
    // The type of requests is not used.
    let encoder = Codec::<T, ServerLiveRequest>::default().encoder();
    let plain = SingleMessageCompressionOverride::default();
    let limit = Some(unary::MAX_MESSAGE);
    let responses = serve(requests, deadline_ns);
    response(EncodeBody::new_server(encoder, responses, None, plain, limit))
}

/// As [`respond`], with compressed messages.
pub fn respond_compressed<B, M, S>(
    ctx: &Arc<Context>,
    request: Request<B>,
    compression: Compression,
    serve: impl FnOnce(StreamMessages<M, B>, u64) -> S,
) -> Response<GrpcBody>
where
    B: StreamBody,
    M: StreamRequest,
    S: Stream<Item = Result<Encoded, Status>> + Send + 'static,
{
    let (requests, deadline_ns) = match requests(ctx, request) {
        Ok(requests) => requests,
        Err(code) => return unary::no_call(code),
    };
    let compressed = serve(requests, deadline_ns).then(move |message| async move {
        match message {
            Ok(message) => compression.stream_message(message).await,
            Err(status) => Err(status),
        }
    });
    let mut response = response(CompressedStream::new(compressed));
    compression.set_header(response.headers_mut());
    response
}

/// The requests of a call and its deadline.
fn requests<B: StreamBody, M: StreamRequest>(
    ctx: &Arc<Context>,
    request: Request<B>,
) -> Result<(StreamMessages<M, B>, u64), StatusCode> {
    unary::check_call(request.method(), request.headers())?;
    let (parts, body) = request.into_parts();
    let deadline_ns = deadline::of(&parts.headers);
    Ok((StreamMessages::new(ctx, parts.headers, body), deadline_ns))
}

fn response<B>(body: B) -> Response<GrpcBody>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let mut response = Response::new(GrpcBody::from(tonic::body::Body::new(body)));
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, grpc);
    response
}
