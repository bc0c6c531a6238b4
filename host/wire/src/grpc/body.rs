//! The body of a gRPC response: one message and its trailers, nothing, or a body made by tonic.

use crate::chunks;
use crate::chunks::{Chunk, ChunkList, Chunks};
use crate::http::body::BoxError;
use crate::load_reports::DemandedReport;
use crate::unread::ConnectionUnread;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use trtserver_base::error::Result as OrError;
use trtserver_request_trace::SendTrace;

pub const STATUS: HeaderName = HeaderName::from_static("grpc-status");
pub const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Body of a gRPC response: one message and its trailers, nothing, or a body that tonic made.
pub struct GrpcBody {
    kind: BodyKind,
    /// Dropped with the body, once it was sent or discarded.
    sent: Option<SendTrace>,
    /// Goes into the trailers.
    report: Option<Box<DemandedReport>>,
}

enum BodyKind {
    /// Followed by the trailers of a success.
    Message(<ChunkList as IntoIterator>::IntoIter),
    Empty,
    /// With the count of its connection.
    Tonic(tonic::body::Body, Option<Arc<ConnectionUnread>>),
}

impl GrpcBody {
    fn with_kind(kind: BodyKind) -> Self {
        Self { kind, sent: None, report: None }
    }

    /// Notes in a trace when the body was sent.
    pub fn trace(&mut self, sent: SendTrace) {
        self.sent = Some(sent);
    }

    /// Adds a load report to the trailers.
    pub fn report_load(&mut self, report: DemandedReport) {
        self.report = Some(Box::new(report));
    }

    pub fn empty() -> Self {
        Self::with_kind(BodyKind::Empty)
    }

    /// The body of a successful unary call.
    pub fn message(message: Chunks) -> Self {
        Self::with_kind(BodyKind::Message(message.finish().0.into_iter()))
    }

    /// The chunks of the message, if there is one. The body is empty afterwards.
    pub fn take_message(&mut self) -> Option<impl Iterator<Item = Chunk> + use<>> {
        match std::mem::replace(&mut self.kind, BodyKind::Empty) {
            BodyKind::Message(chunks) => Some(chunks),
            other => {
                self.kind = other;
                None
            }
        }
    }

    /// Counts the body as unread; see [`chunks::count_unread`].
    pub fn count(&mut self, unread: &Arc<ConnectionUnread>) -> OrError<()> {
        match &mut self.kind {
            BodyKind::Message(chunks) => chunks::count_unread(chunks.as_mut_slice(), unread),
            BodyKind::Empty => Ok(()),
            BodyKind::Tonic(_, counted) => {
                *counted = Some(Arc::clone(unread));
                Ok(())
            }
        }
    }
}

impl From<tonic::body::Body> for GrpcBody {
    fn from(body: tonic::body::Body) -> Self {
        Self::with_kind(BodyKind::Tonic(body, None))
    }
}

impl Body for GrpcBody {
    type Data = Chunk;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        let Self { kind, report, .. } = &mut *self;
        match kind {
            BodyKind::Message(chunks) => {
                if let Some(chunk) = chunks.next() {
                    return Poll::Ready(Some(Ok(Frame::data(chunk))));
                }
                *kind = BodyKind::Empty;
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(STATUS, HeaderValue::from_static("0"));
                if let Some(report) = report.take() {
                    report.add_to(&mut trailers);
                }
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            BodyKind::Empty => Poll::Ready(None),
            BodyKind::Tonic(body, unread) => {
                let mut frame = Pin::new(body).poll_frame(cx);
                if let Poll::Ready(Some(Ok(frame))) = &mut frame
                    && let Some(trailers) = frame.trailers_mut()
                    && let Some(report) = report.take()
                {
                    report.add_to(trailers);
                }
                frame.map(|frame| {
                    frame.map(|frame| match frame {
                        Ok(frame) => {
                            Ok(frame.map_data(|data| Chunk::counted(data, unread.as_ref())))
                        }
                        Err(status) => Err(status.into()),
                    })
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Empty => true,
            BodyKind::Tonic(body, _) => body.is_end_stream(),
            BodyKind::Message(_) => false,
        }
    }

    // No size hint: hyper would send a `Content-Length`, which gRPC does not use.
}
