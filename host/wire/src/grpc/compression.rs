//! Compression of inference responses (`--grpc-infer-response-compression-level`), for clients that
//! accept gzip or deflate. Long ones are compressed on decode workers.

use super::body::{GrpcBody, MESSAGE, STATUS};
use super::unary::{self, PREFIX, percent_encode};
use crate::chunks::Chunks;
use crate::compression::Coding;
use crate::status_code::to_grpc_status;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::{Body, Frame};
use prost::encoding::{WireType, encode_key, encode_varint};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio_stream::Stream;
use tonic::Status;
use trtserver_base::error::Error;
use trtserver_base::ledger::LedgerHolder;
use trtserver_proto::codec::Encoded;

const ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// How the responses of a call are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    coding: Coding,
    /// Compression level of flate2.
    level: u32,
}

impl Compression {
    /// gzip if the client of a call with these headers accepts it, else deflate; `None` if it
    /// accepts neither.
    pub fn from_headers(headers: &HeaderMap, level: u32) -> Option<Self> {
        let accepts = |coding: &Coding| {
            let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|name| name.trim() == coding.name())
        };
        let coding = [Coding::Gzip, Coding::Deflate].into_iter().find(accepts)?;
        Some(Self { coding, level })
    }

    /// Compresses the message of a unary call. A refusal has none and stays as it is.
    pub async fn compress(self, mut response: Response<GrpcBody>) -> Response<GrpcBody> {
        let Some(chunks) = response.body_mut().take_message() else { return response };
        let mut parts: VecDeque<_> = chunks.collect();
        if let Some(first) = parts.front_mut() {
            first.advance(PREFIX);
        }
        match self.message(BufferReader(parts)).await {
            Ok(message) => {
                *response.body_mut() = GrpcBody::message(message);
                self.set_header(response.headers_mut());
                response
            }
            Err(status) => unary::refuse_call(&status),
        }
    }

    /// Compresses a message of a stream.
    pub async fn stream_message(self, message: Encoded) -> Result<Bytes, Status> {
        // Counted as unread until it was compressed.
        let Encoded { head, field, payloads, counted: _counted } = message;
        let mut parts = VecDeque::from([Bytes::from(head)]);
        for payload in payloads {
            let mut key = Vec::new();
            encode_key(field, WireType::LengthDelimited, &mut key);
            encode_varint(payload.len() as u64, &mut key);
            parts.extend([key.into(), payload]);
        }
        let (chunks, len) = self.message(BufferReader(parts)).await?.finish();
        let mut whole = BytesMut::with_capacity(usize::try_from(len).unwrap_or(0));
        chunks.into_iter().for_each(|chunk| whole.put(chunk));
        Ok(whole.freeze())
    }

    pub fn set_header(self, headers: &mut HeaderMap) {
        headers.insert(ENCODING, HeaderValue::from_static(self.coding.name()));
    }

    /// The compressed message with its prefix.
    async fn message<B: Buf + Send + 'static>(
        self,
        parts: BufferReader<B>,
    ) -> Result<Chunks, Status> {
        let len: usize = parts.0.iter().map(Buf::remaining).sum();
        let level = flate2::Compression::new(self.level);
        let compressed =
            self.coding.compress_at(level, parts, len as u64, LedgerHolder::Encode.into());
        let compressed = compressed.await.map_err(|e| {
            let own = e.own_fault("a compressed response");
            to_grpc_status(
                own.unwrap_or_else(|| Error::internal("compression of the response failed")),
            )
        })?;
        let mut message = Chunks::with_capacity(PREFIX);
        let prefix = message.buffer(PREFIX);
        prefix.put_u8(1);
        prefix.put_u32(u32::try_from(compressed.len()).unwrap_or(u32::MAX));
        message.push(compressed);
        Ok(message)
    }
}

/// Reads buffers one after another.
struct BufferReader<B>(VecDeque<B>);

impl<B: Buf> Read for BufferReader<B> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(first) = self.0.front_mut() {
            let n = first.chunk().len().min(to.len());
            if n > 0 || to.is_empty() {
                first.copy_to_slice(&mut to[..n]);
                return Ok(n);
            }
            self.0.pop_front();
        }
        Ok(0)
    }
}

pin_project_lite::pin_project! {
    /// The body of a stream whose messages were compressed: the messages, then trailers with the
    /// status.
    pub struct CompressedStream<S> {
        #[pin]
        messages: S,
        ended: bool,
    }
}

impl<S> CompressedStream<S> {
    pub fn new(messages: S) -> Self {
        Self { messages, ended: false }
    }
}

impl<S: Stream<Item = Result<Bytes, Status>>> Body for CompressedStream<S> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.project();
        if *this.ended {
            return Poll::Ready(None);
        }
        let status = match ready!(this.messages.poll_next(cx)) {
            Some(Ok(message)) => return Poll::Ready(Some(Ok(Frame::data(message)))),
            Some(Err(status)) => status,
            None => Status::ok(""),
        };
        *this.ended = true;
        let mut trailers = HeaderMap::with_capacity(2);
        trailers.insert(STATUS, HeaderValue::from(status.code() as i32));
        if let Ok(text) = HeaderValue::from_str(&percent_encode(status.message()))
            && !status.message().is_empty()
        {
            trailers.insert(MESSAGE, text);
        }
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

#[cfg(test)]
#[path = "compression_tests.rs"]
mod tests;
