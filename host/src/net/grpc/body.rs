//! The body of a gRPC response: one message and its trailers, nothing, or a body made by tonic.

use crate::net::http::body::BoxError;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

pub const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// Pieces up to this size are copied into a shared buffer; larger ones travel alone.
const SMALL: usize = 4 << 10;

/// See the module text. A message is followed by the trailers of a success.
pub struct GrpcBody(Kind);

enum Kind {
    Message { next: Bytes, rest: VecDeque<Bytes> },
    Trailers,
    Empty,
    Tonic(tonic::body::Body),
}

impl GrpcBody {
    pub fn empty() -> Self {
        Self(Kind::Empty)
    }
}

impl From<tonic::body::Body> for GrpcBody {
    fn from(body: tonic::body::Body) -> Self {
        Self(Kind::Tonic(body))
    }
}

impl Body for GrpcBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Message { next, rest } => {
                let chunk = std::mem::take(next);
                match rest.pop_front() {
                    Some(following) => *next = following,
                    None => self.0 = Kind::Trailers,
                }
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
            Kind::Trailers => {
                self.0 = Kind::Empty;
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(STATUS, HeaderValue::from_static("0"));
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            Kind::Empty => Poll::Ready(None),
            Kind::Tonic(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Tonic(body) => body.is_end_stream(),
            Kind::Message { .. } | Kind::Trailers => false,
        }
    }

    // No size hint: hyper would make a content-length of it, which gRPC has no use for.
}

/// A message under construction.
pub struct Message {
    done: VecDeque<Bytes>,
    open: Vec<u8>,
}

impl Message {
    /// `small` bytes will be copied, as far as is known.
    pub fn with_room(small: usize) -> Self {
        Self { done: VecDeque::new(), open: Vec::with_capacity(small) }
    }

    /// What a piece of `len` bytes takes of the shared buffer.
    pub fn room_for(len: usize) -> usize {
        if len <= SMALL { len } else { 0 }
    }

    /// Where to append what is copied.
    pub fn open(&mut self) -> &mut Vec<u8> {
        &mut self.open
    }

    /// Appends a piece, copied only if it is small.
    pub fn push(&mut self, piece: &Bytes) {
        if piece.len() <= SMALL {
            self.open.extend_from_slice(piece);
        } else {
            self.close();
            self.done.push_back(piece.clone());
        }
    }

    pub fn finish(mut self) -> GrpcBody {
        // Most messages are one chunk, which needs no queue.
        let next = match self.done.pop_front() {
            Some(first) => {
                self.close();
                first
            }
            None => self.open.into(),
        };
        GrpcBody(Kind::Message { next, rest: self.done })
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push_back(std::mem::take(&mut self.open).into());
        }
    }
}
