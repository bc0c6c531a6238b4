//! A unary call: its deadline, its message, and refusals as responses.

use super::receive::{MessageLimits, receive_message};
use super::respond::refuse_call;
use super::{MessageBuf, RequestedModel};
use crate::context::FrontendContext;
use crate::grpc::body::GrpcBody;
use crate::grpc::deadline;
use crate::grpc::deadline::DeadlineFuture;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use tonic::Status;

/// A unary inference call.
pub struct UnaryCall<B> {
    pub ctx: Arc<FrontendContext>,
    pub headers: HeaderMap,
    body: B,
    /// 0 = none.
    pub deadline_ns: u64,
}

impl<B: Body<Data = Bytes> + Unpin> UnaryCall<B> {
    /// Receives the message, without decoding it.
    ///
    /// # Errors
    /// The status for [`refuse`].
    pub async fn receive(&mut self) -> Result<MessageBuf, Status> {
        let memory_of = |model: RequestedModel<'_>| model.input_memory(&self.ctx.models);
        let limits = MessageLimits::from_settings(&self.ctx.settings);
        receive_message(&self.headers, &mut self.body, &memory_of, limits).await
    }
}

pin_project_lite::pin_project! {
    /// See [`serve_unary`]. An `async` block would hold the work twice.
    #[project = ServeProjection]
    pub enum ServeFuture<W> {
        NoCall { code: StatusCode },
        Call { #[pin] work: DeadlineFuture<W> },
    }
}

/// Serves a unary inference call with `work`. Refuses requests that are not gRPC calls. Dropping
/// the future cancels the call.
pub fn serve_unary<B, W>(
    ctx: &Arc<FrontendContext>,
    request: Request<B>,
    work: impl FnOnce(UnaryCall<B>) -> W,
) -> ServeFuture<W>
where
    W: Future<Output = Result<Response<GrpcBody>, Status>>,
{
    let (parts, body) = request.into_parts();
    if let Err(code) = check_call(&parts.method, &parts.headers) {
        return ServeFuture::NoCall { code };
    }
    let (ctx, headers) = (Arc::clone(ctx), parts.headers);
    let deadline_ns = deadline::read_deadline(&headers);
    let call = UnaryCall { ctx, headers, body, deadline_ns };
    ServeFuture::Call { work: deadline::run_until_deadline(deadline_ns, work(call)) }
}

impl<W> Future for ServeFuture<W>
where
    W: Future<Output = Result<Response<GrpcBody>, Status>>,
{
    type Output = Response<GrpcBody>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Response<GrpcBody>> {
        match self.project() {
            ServeProjection::NoCall { code } => Poll::Ready(no_call(*code)),
            ServeProjection::Call { work } => {
                work.poll(cx).map(|response| response.unwrap_or_else(|status| refuse_call(&status)))
            }
        }
    }
}

/// Refuses requests that are not gRPC calls.
pub fn check_call(method: &Method, headers: &HeaderMap) -> Result<(), StatusCode> {
    let content = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if method != Method::POST {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    if !content.starts_with(b"application/grpc") || content.starts_with(b"application/grpc-web") {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    Ok(())
}

/// The response to a request that is not a gRPC call.
pub fn no_call(code: StatusCode) -> Response<GrpcBody> {
    let mut response = Response::new(GrpcBody::empty());
    *response.status_mut() = code;
    response
}
