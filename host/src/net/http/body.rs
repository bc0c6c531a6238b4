//! The body of an HTTP response: a short list of chunks.

use crate::error::Result as OrError;
use crate::net::chunks::{self, Chunk, ChunkList, Chunks};
use crate::net::unread::ConnectionUnread;
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Errors of a body, as hyper expects them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// See the module text. Its length is known, so hyper writes a `Content-Length`.
pub struct ResponseBody {
    chunks: <ChunkList as IntoIterator>::IntoIter,
    left: u64,
}

impl ResponseBody {
    pub fn empty() -> Self {
        Self::from_chunks(Chunks::default())
    }

    pub fn from_chunks(chunks: Chunks) -> Self {
        let (chunks, left) = chunks.finish();
        Self { chunks: chunks.into_iter(), left }
    }

    /// Counts the body as unread; see [`chunks::count`].
    pub fn count(&mut self, unread: &Arc<ConnectionUnread>) -> OrError<()> {
        chunks::count(self.chunks.as_mut_slice(), unread)
    }

    fn whole(chunk: Chunk) -> Self {
        let left = chunk.remaining() as u64;
        let chunks: ChunkList = (left > 0).then_some(chunk).into_iter().collect();
        Self { chunks: chunks.into_iter(), left }
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
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        Poll::Ready(self.chunks.next().map(|chunk| {
            self.left -= chunk.remaining() as u64;
            Ok(Frame::data(chunk))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
