//! The body of an HTTP response: a short list of byte chunks.
//!
//! Large tensors stay chunks of their own and are never copied; small pieces share a buffer, which
//! saves writes to the socket.

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use smallvec::SmallVec;
use std::io::Cursor;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Errors of a body, as hyper wants them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// See the module text.
pub struct ResponseBody {
    chunks: smallvec::IntoIter<[Chunk; 2]>,
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

    fn whole(chunk: Chunk) -> Self {
        let left = chunk.remaining() as u64;
        let chunks: SmallVec<[Chunk; 2]> = (left > 0).then_some(chunk).into_iter().collect();
        Self { chunks: chunks.into_iter(), left }
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self::whole(Chunk::Shared(bytes))
    }
}

impl From<String> for ResponseBody {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Vec<u8>> for ResponseBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::whole(Chunk::Owned(Cursor::new(bytes)))
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

/// Bytes of a body, on their way to the socket.
#[derive(Debug)]
pub enum Chunk {
    Shared(Bytes),
    /// Of nobody else: `Bytes` would want memory for its counter.
    Owned(Cursor<Vec<u8>>),
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        match self {
            Chunk::Shared(bytes) => bytes.remaining(),
            Chunk::Owned(bytes) => bytes.remaining(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Chunk::Shared(bytes) => bytes.chunk(),
            Chunk::Owned(bytes) => bytes.chunk(),
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Chunk::Shared(bytes) => bytes.advance(count),
            Chunk::Owned(bytes) => bytes.advance(count),
        }
    }
}

/// Pieces up to this size are copied into a shared buffer; larger ones travel alone.
pub const SMALL: usize = 4 << 10;
/// A shared buffer is sent off once it holds this much.
const SHARED: usize = 16 << 10;

/// A body under construction.
#[derive(Default)]
pub struct Chunks {
    done: SmallVec<[Chunk; 2]>,
    open: Vec<u8>,
    len: u64,
}

impl Chunks {
    /// Appends a copy.
    pub fn push_slice(&mut self, piece: &[u8]) {
        self.room(piece.len()).extend_from_slice(piece);
    }

    /// Appends an encoded message.
    pub fn push_message(&mut self, message: &impl prost::Message) {
        message.encode_raw(self.room(message.encoded_len()));
    }

    /// Where to append exactly `len` bytes.
    pub fn room(&mut self, len: usize) -> &mut Vec<u8> {
        if !self.open.is_empty() && self.open.len() + len > SHARED {
            self.close();
        }
        self.open.reserve(len);
        self.len += len as u64;
        &mut self.open
    }

    /// Appends a piece, copied only if it is small.
    pub fn push(&mut self, piece: Bytes) {
        if piece.len() <= SMALL {
            return self.push_slice(&piece);
        }
        self.close();
        self.len += piece.len() as u64;
        self.done.push(Chunk::Shared(piece));
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunks in order, none of them empty, and their length together.
    pub fn finish(mut self) -> (SmallVec<[Chunk; 2]>, u64) {
        self.close();
        (self.done, self.len)
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push(Chunk::Owned(Cursor::new(std::mem::take(&mut self.open))));
        }
    }
}

impl From<Vec<u8>> for Chunks {
    fn from(head: Vec<u8>) -> Self {
        let len = head.len() as u64;
        let mut chunks = Self { done: SmallVec::new(), open: head, len };
        if len > SMALL as u64 {
            chunks.close();
        }
        chunks
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
