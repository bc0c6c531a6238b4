//! The body of a gRPC response: one message and its trailers, nothing, or a body made by tonic.

use crate::net::chunks::{Chunk, ChunkList, Chunks};
use crate::net::http::body::BoxError;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use std::pin::Pin;
use std::task::{Context, Poll};

pub const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// See the module text.
pub struct GrpcBody(Kind);

enum Kind {
    /// Followed by the trailers of a success.
    Message(<ChunkList as IntoIterator>::IntoIter),
    Empty,
    Tonic(tonic::body::Body),
}

impl GrpcBody {
    pub fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// The body of a successful unary call.
    pub fn message(message: Chunks) -> Self {
        Self(Kind::Message(message.finish().0.into_iter()))
    }
}

impl From<tonic::body::Body> for GrpcBody {
    fn from(body: tonic::body::Body) -> Self {
        Self(Kind::Tonic(body))
    }
}

impl Body for GrpcBody {
    type Data = Chunk;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        match &mut self.0 {
            Kind::Message(chunks) => {
                if let Some(chunk) = chunks.next() {
                    return Poll::Ready(Some(Ok(Frame::data(chunk))));
                }
                self.0 = Kind::Empty;
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(STATUS, HeaderValue::from_static("0"));
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            Kind::Empty => Poll::Ready(None),
            Kind::Tonic(body) => {
                let frame = Pin::new(body).poll_frame(cx);
                frame.map(|frame| {
                    frame.map(|frame| match frame {
                        Ok(frame) => Ok(frame.map_data(Chunk::Shared)),
                        Err(status) => Err(status.into()),
                    })
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Tonic(body) => body.is_end_stream(),
            Kind::Message(_) => false,
        }
    }

    // No size hint: hyper would send a `Content-Length`, which gRPC does not use.
}
