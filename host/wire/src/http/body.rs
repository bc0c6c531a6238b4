//! The body of an HTTP response: a short list of chunks, or a stream of them.

use crate::chunks;
use crate::chunks::{Chunk, ChunkList, Chunks};
use crate::unread::ConnectionUnread;
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio_stream::Stream;
use trtserver_base::error::Result as OrError;
use trtserver_request_trace::SendTrace;

/// Errors of a body, as hyper expects them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Body of an HTTP response: a list of chunks, or a stream of them. The length of a list is known,
/// so hyper writes a `Content-Length`.
pub struct ResponseBody {
    chunks: <ChunkList as IntoIterator>::IntoIter,
    left: u64,
    stream: Option<ChunkStream>,
    /// Dropped with the body, once it was sent or discarded.
    sent: Option<SendTrace>,
}

/// The chunks of a streamed response.
pub type ChunkStream = Pin<Box<dyn Stream<Item = Chunk> + Send>>;

impl ResponseBody {
    pub fn empty() -> Self {
        Self::from_chunks(Chunks::default())
    }

    pub fn from_chunks(chunks: Chunks) -> Self {
        let (chunks, left) = chunks.finish();
        Self { chunks: chunks.into_iter(), left, stream: None, sent: None }
    }

    /// A body of unknown length.
    pub fn streamed(stream: ChunkStream) -> Self {
        Self { stream: Some(stream), ..Self::empty() }
    }

    /// Keeps `held` until a streamed body has ended; drops it otherwise, since the response is
    /// ready.
    pub fn hold_until_end(&mut self, held: impl Send + Unpin + 'static) {
        if let Some(stream) = self.stream.take() {
            self.stream = Some(Box::pin(HoldingStream { stream, _held: held }));
        }
    }

    /// Notes in a trace when the body was sent.
    pub fn trace(&mut self, sent: SendTrace) {
        self.sent = Some(sent);
    }

    /// Counts the body as unread; see [`chunks::count_unread`].
    pub fn count(&mut self, unread: &Arc<ConnectionUnread>) -> OrError<()> {
        chunks::count_unread(self.chunks.as_mut_slice(), unread)
    }

    fn whole(chunk: Chunk) -> Self {
        let left = chunk.remaining() as u64;
        let chunks: ChunkList = (left > 0).then_some(chunk).into_iter().collect();
        Self { chunks: chunks.into_iter(), left, stream: None, sent: None }
    }
}

/// A stream that keeps something until its end.
struct HoldingStream<H> {
    stream: ChunkStream,
    _held: H,
}

impl<H: Unpin> Stream for HoldingStream<H> {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        self.stream.as_mut().poll_next(cx)
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self::whole(bytes.into())
    }
}

impl From<String> for ResponseBody {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Vec<u8>> for ResponseBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::whole(bytes.into())
    }
}

impl Body for ResponseBody {
    type Data = Chunk;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        if let Some(stream) = &mut self.stream {
            return stream.as_mut().poll_next(cx).map(|chunk| Some(Ok(Frame::data(chunk?))));
        }
        Poll::Ready(self.chunks.next().map(|chunk| {
            self.left -= chunk.remaining() as u64;
            Ok(Frame::data(chunk))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.as_slice().is_empty() && self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.stream {
            None => SizeHint::with_exact(self.left),
            Some(_) => SizeHint::default(),
        }
    }
}
