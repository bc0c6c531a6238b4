//! The call of a stream: `stream_messages` decodes the requests, tonic encodes the responses.

use super::body::GrpcBody;
use super::compression::{CompressedStream, Compression};
use super::deadline;
use super::first_message::{self, BegunBody};
use super::stream_messages::{StreamBody, StreamDecoding, StreamMessages, StreamRequest};
use super::unary;
use crate::context::FrontendContext;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use std::sync::Arc;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{Codec as _, EncodeBody, SingleMessageCompressionOverride};
use trtserver_base::request_id::RequestId;
use trtserver_proto::codec::{Codec, Encode, Encoded};
use trtserver_proto::v2::ServerLiveRequest;

/// Responds with the messages that `serve` returns for the requests of a stream and the deadline of
/// the call. It is called when the first request has arrived. Refuses requests that are not gRPC
/// calls.
pub fn respond_with_stream<B, M, T, S>(
    ctx: &Arc<FrontendContext>,
    request: Request<B>,
    decoding: StreamDecoding<M>,
    serve: impl FnOnce(StreamMessages<M, BegunBody<B>>, u64) -> S + Send + 'static,
) -> Response<GrpcBody>
where
    B: StreamBody,
    M: StreamRequest,
    T: Encode + Send + 'static,
    S: Stream<Item = Result<T, Status>> + Send + 'static,
{
    let call = match StreamCall::open(ctx, request) {
        Ok(call) => call,
        Err(code) => return unary::no_call(code),
    };
    call.respond(decoding, |requests, deadline_ns| {
        // The type of requests is not used.
        let encoder = Codec::<T, ServerLiveRequest>::default().encoder();
        let plain = SingleMessageCompressionOverride::default();
        let limit = Some(unary::MAX_MESSAGE);
        let responses = serve(requests, deadline_ns);
        Body::new(EncodeBody::new_server(encoder, responses, None, plain, limit))
    })
}

/// As [`respond_with_stream`], with compressed messages.
pub fn respond_compressed<B, M, S>(
    ctx: &Arc<FrontendContext>,
    request: Request<B>,
    decoding: StreamDecoding<M>,
    compression: Compression,
    serve: impl FnOnce(StreamMessages<M, BegunBody<B>>, u64) -> S + Send + 'static,
) -> Response<GrpcBody>
where
    B: StreamBody,
    M: StreamRequest,
    S: Stream<Item = Result<Encoded, Status>> + Send + 'static,
{
    let call = match StreamCall::open(ctx, request) {
        Ok(call) => call,
        Err(code) => return unary::no_call(code),
    };
    let mut response = call.respond(decoding, move |requests, deadline_ns| {
        let compressed = serve(requests, deadline_ns).then(move |message| async move {
            match message {
                Ok(message) => compression.stream_message(message).await,
                Err(status) => Err(status),
            }
        });
        Body::new(CompressedStream::new(compressed))
    });
    compression.set_header(response.headers_mut());
    response
}

/// A call whose requests are a stream.
struct StreamCall<B> {
    ctx: Arc<FrontendContext>,
    /// Only the headers that decoding of the requests needs: an open stream holds few bytes.
    headers: HeaderMap,
    deadline_ns: u64,
    body: B,
}

impl<B: StreamBody> StreamCall<B> {
    fn open(ctx: &Arc<FrontendContext>, request: Request<B>) -> Result<Self, StatusCode> {
        unary::check_call(request.method(), request.headers())?;
        let (parts, body) = request.into_parts();
        let (ctx, headers) = (Arc::clone(ctx), unary::message_headers(&parts.headers));
        Ok(Self { ctx, headers, deadline_ns: deadline::read_deadline(&parts.headers), body })
    }

    /// The response, whose body `serve` makes when the first request has arrived.
    fn respond<M: StreamRequest>(
        self,
        decoding: StreamDecoding<M>,
        serve: impl FnOnce(StreamMessages<M, BegunBody<B>>, u64) -> Body + Send + 'static,
    ) -> Response<GrpcBody> {
        let Self { ctx, headers, deadline_ns, body } = self;
        let request = RequestId::current();
        let begin = move |body| {
            let _entered = request.as_ref().map(|request| request.enter());
            serve(StreamMessages::new(&ctx, headers, body, decoding), deadline_ns)
        };
        let waiting = first_message::respond_after_first_message(body, deadline_ns, begin);
        let mut response = Response::new(GrpcBody::from(Body::new(waiting)));
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(header::CONTENT_TYPE, grpc);
        response
    }
}
