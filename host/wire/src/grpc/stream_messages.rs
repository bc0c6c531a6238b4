//! The requests of a stream: framing, limits, decompression and decoding as for unary calls, not by
//! tonic, which would do all of it on network threads and without limits.

use super::unary::{self, MessageBuf, MessageLimits, MessageReceiver, PREFIX, RequestedModel};
use crate::context::FrontendContext;
use crate::decode_workers;
use crate::decode_workers::ReadyOrDeferred;
use crate::http::body::BoxError;
use crate::status_code::to_grpc_status;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use tokio_stream::Stream;
use tonic::Status;
use trtserver_proto::schema::Described;

/// The body of a call whose requests are a stream.
pub trait StreamBody: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> StreamBody for B {}

/// A request message of a stream.
pub trait StreamRequest: Described + Send + 'static {}

impl<M: Described + Send + 'static> StreamRequest for M {}

/// How the messages of a stream are decoded.
pub struct StreamDecoding<M> {
    /// Number of the field with raw tensors.
    pub raw_field: u32,
    /// Converts what takes long to convert, on a decode worker.
    pub convert: fn(&mut M),
}

impl<M> StreamDecoding<M> {
    /// Decoding of messages that need no conversion.
    pub fn without_conversion(raw_field: u32) -> Self {
        Self { raw_field, convert: |_| () }
    }
}

impl<M> Clone for StreamDecoding<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for StreamDecoding<M> {}

/// The decoded messages of a stream. Ends when the client half-closes or resets it.
pub struct StreamMessages<M, B> {
    /// Resolves to the next message, with what reads the ones after it.
    next: Pin<Box<dyn Future<Output = NextMessage<M, B>> + Send>>,
    decoding: StreamDecoding<M>,
    ended: bool,
}

type NextMessage<M, B> = (Result<Option<M>, Status>, StreamReader<B>);

impl<M, B> StreamMessages<M, B>
where
    M: StreamRequest,
    B: StreamBody,
{
    /// The messages in the body of a call with these headers.
    pub fn new(
        ctx: &Arc<FrontendContext>,
        headers: HeaderMap,
        body: B,
        decoding: StreamDecoding<M>,
    ) -> Self {
        let (ctx, body, pending) = (Arc::clone(ctx), Box::pin(body), Bytes::new());
        let reader = StreamReader { ctx, headers, body, pending };
        Self { next: Box::pin(reader.decoded(decoding)), decoding, ended: false }
    }
}

impl<M, B> Stream for StreamMessages<M, B>
where
    M: StreamRequest,
    B: StreamBody,
{
    type Item = Result<M, Status>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<M, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let (message, reader) = ready!(self.next.as_mut().poll(cx));
        match &message {
            Ok(Some(_)) => self.next = Box::pin(reader.decoded(self.decoding)),
            Ok(None) | Err(_) => self.ended = true,
        }
        Poll::Ready(message.transpose())
    }
}

struct StreamReader<B> {
    ctx: Arc<FrontendContext>,
    headers: HeaderMap,
    body: Pin<Box<B>>,
    /// Bytes that follow the last message.
    pending: Bytes,
}

impl<B: StreamBody> StreamReader<B> {
    /// The next message; `None` at the end.
    async fn decoded<M: StreamRequest>(mut self, decoding: StreamDecoding<M>) -> NextMessage<M, B> {
        let message = match self.message().await {
            Ok(Some(frames)) => decode(frames, decoding).await.map(Some),
            Ok(None) => Ok(None),
            Err(status) => Err(status),
        };
        (message, self)
    }

    async fn message(&mut self) -> Result<Option<MessageBuf>, Status> {
        let cut = || Status::internal("the stream ended before a whole message was received");
        let limits = MessageLimits::from_settings(&self.ctx.settings);
        while self.pending.len() < PREFIX {
            match self.frame().await? {
                Some(data) if self.pending.is_empty() => self.pending = data,
                Some(data) => {
                    let mut joined = BytesMut::from(&self.pending[..]);
                    joined.extend_from_slice(&data);
                    self.pending = joined.freeze();
                }
                None if self.pending.is_empty() => return Ok(None),
                None => return Err(cut()),
            }
        }
        let [_, length @ ..] = self.pending.first_chunk::<PREFIX>().copied().unwrap_or_default();
        let length = u32::from_be_bytes(length) as usize;
        if length > limits.message {
            return Err(unary::too_long(length, limits.message));
        }
        let ctx = Arc::clone(&self.ctx);
        let memory_of = |model: RequestedModel<'_>| model.input_memory(&ctx.models);
        let mut receiver = MessageReceiver::new(&memory_of);
        let mut left = PREFIX + length;
        loop {
            let part = self.pending.split_to(left.min(self.pending.len()));
            left -= part.len();
            receiver.pay(part.len()).await.map_err(|e| to_grpc_status(e.refuse()))?;
            receiver.push(part);
            if left == 0 {
                break;
            }
            self.pending = self.frame().await?.ok_or_else(cut)?;
        }
        let message = match unary::open_message(&self.headers, receiver.finish(), limits) {
            ReadyOrDeferred::Ready(message) => message,
            ReadyOrDeferred::Deferred(work) => work.await,
        };
        message.map(Some)
    }

    /// The next bytes; `None` at the end.
    async fn frame(&mut self) -> Result<Option<Bytes>, Status> {
        while let Some(frame) = self.body.frame().await {
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(data)) => return Ok(Some(data)),
                // Trailers.
                Ok(Err(_)) => {}
                Err(e) => {
                    let status = Status::from_error(e.into());
                    // The client reset the stream.
                    let reset = status.code() == tonic::Code::Cancelled;
                    return if reset { Ok(None) } else { Err(status) };
                }
            }
        }
        Ok(None)
    }
}

async fn decode<M: StreamRequest>(
    frames: MessageBuf,
    decoding: StreamDecoding<M>,
) -> Result<M, Status> {
    if !unary::is_heavy(&frames, decoding.raw_field) {
        return unary::decode_message(M::schema(), frames);
    }
    let (frames, _reservation) = unary::reserve_decoded(M::schema(), frames).await?;
    let decode = move || {
        let mut message: M = unary::decode_message(M::schema(), frames)?;
        (decoding.convert)(&mut message);
        Ok(message)
    };
    decode_workers::run_on_worker(decode).await.map_err(to_grpc_status)?
}

#[cfg(test)]
#[path = "stream_messages_tests.rs"]
mod tests;
