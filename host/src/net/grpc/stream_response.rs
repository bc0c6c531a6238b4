//! The response of a stream: tonic encodes the messages.

use super::body::GrpcBody;
use super::unary;
use http::{HeaderValue, Request, Response, header};
use tokio_stream::Stream;
use tonic::Status;
use tonic::codec::{Codec as _, EncodeBody, SingleMessageCompressionOverride};
use trtserver_proto::codec::{Codec, Encode};
use trtserver_proto::v2::ServerLiveRequest;

/// Answers a stream with the messages that `serve` returns. Refuses requests that are no gRPC calls.
pub fn respond<B, T, S>(
    request: Request<B>,
    serve: impl FnOnce(Request<B>) -> S,
) -> Response<GrpcBody>
where
    T: Encode + Send + 'static,
    S: Stream<Item = Result<T, Status>> + Send + 'static,
{
    if let Err(code) = unary::check_call(request.method(), request.headers()) {
        let mut response = Response::new(GrpcBody::empty());
        *response.status_mut() = code;
        return response;
    }
    // The type of requests is not used.
    let encoder = Codec::<T, ServerLiveRequest>::default().encoder();
    let plain = SingleMessageCompressionOverride::default();
    let limit = Some(unary::MAX_MESSAGE);
    let body = EncodeBody::new_server(encoder, serve(request), None, plain, limit);
    let mut response = Response::new(GrpcBody::from(tonic::body::Body::new(body)));
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, grpc);
    response
}
