//! A unary call: its deadline, its message, and refusals as responses.

use super::receive::{Limits, receive};
use super::respond::refuse;
use super::{MessageBuf, RequestedModel};
use crate::context::Context;
use crate::grpc::body::GrpcBody;
use crate::grpc::deadline;
use crate::grpc::deadline::Within;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use tonic::Status;

/// A unary inference call.
pub struct Call<B> {
    pub ctx: Arc<Context>,
    pub headers: HeaderMap,
    body: B,
    /// 0 = none.
    pub deadline_ns: u64,
}

impl<B: Body<Data = Bytes> + Unpin> Call<B> {
    /// Receives the message, without decoding it.
    ///
    /// # Errors
    /// The status for [`refuse`].
    pub async fn receive(&mut self) -> Result<MessageBuf, Status> {
        let memory_of = |model: RequestedModel<'_>| model.input_memory(&self.ctx.models);
        let limits = Limits::of(&self.ctx.settings);
        receive(&self.headers, &mut self.body, &memory_of, limits).await
    }
}

pin_project_lite::pin_project! {
    /// See [`serve`]. An `async` block would hold the work twice.
    #[project = ServeProjection]
    pub enum Serve<W> {
        NoCall { code: StatusCode },
        Call { #[pin] work: Within<W> },
    }
}

/// Serves a unary inference call with `work`. Refuses requests that are not gRPC calls. Dropping
/// the future cancels the call.
pub fn serve<B, W>(
    ctx: &Arc<Context>,
    request: Request<B>,
    work: impl FnOnce(Call<B>) -> W,
) -> Serve<W>
where
    W: Future<Output = Result<Response<GrpcBody>, Status>>,
{
    let (parts, body) = request.into_parts();
    if let Err(code) = check_call(&parts.method, &parts.headers) {
        return Serve::NoCall { code };
    }
    let (ctx, headers) = (Arc::clone(ctx), parts.headers);
    let deadline_ns = deadline::of(&headers);
    let call = Call { ctx, headers, body, deadline_ns };
    Serve::Call { work: deadline::within(deadline_ns, work(call)) }
}

impl<W> Future for Serve<W>
where
    W: Future<Output = Result<Response<GrpcBody>, Status>>,
{
    type Output = Response<GrpcBody>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Response<GrpcBody>> {
        match self.project() {
            ServeProjection::NoCall { code } => Poll::Ready(no_call(*code)),
            ServeProjection::Call { work } => {
                work.poll(cx).map(|response| response.unwrap_or_else(|status| refuse(&status)))
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
