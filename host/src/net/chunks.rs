//! Bodies of responses, for both wires: large tensors are zero-copy chunks of their own, small pieces are copied into a shared
//! buffer, which saves writes to the socket.

use bytes::{Buf, Bytes};
use smallvec::SmallVec;
use std::io::Cursor;

/// The chunks of a body, in order.
pub type ChunkList = SmallVec<[Chunk; 2]>;

/// Contiguous bytes of a body.
#[derive(Debug)]
pub enum Chunk {
    Shared(Bytes),
    /// Has one owner: `Bytes` would allocate a reference count.
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

/// Pieces up to this size are copied into a shared buffer; larger ones become chunks of their own.
const MAX_COPIED: usize = 4 << 10;
/// A shared buffer does not grow beyond this size.
const MAX_SHARED: usize = 16 << 10;

/// How many bytes of a piece of `len` bytes are copied.
pub fn copied(len: usize) -> usize {
    if len <= MAX_COPIED { len } else { 0 }
}

/// A body under construction.
#[derive(Default)]
pub struct Chunks {
    done: ChunkList,
    open: Vec<u8>,
    len: u64,
}

impl Chunks {
    /// `copied` bytes will be copied, as far as is known.
    pub fn with_capacity(copied: usize) -> Self {
        Self { open: Vec::with_capacity(copied), ..Self::default() }
    }

    /// Appends a copy.
    pub fn push_slice(&mut self, piece: &[u8]) {
        self.buffer(piece.len()).extend_from_slice(piece);
    }

    /// Appends an encoded message.
    pub fn push_message(&mut self, message: &impl prost::Message) {
        message.encode_raw(self.buffer(message.encoded_len()));
    }

    /// A buffer to which the caller appends exactly `len` bytes.
    pub fn buffer(&mut self, len: usize) -> &mut Vec<u8> {
        if self.open.len() + len > self.open.capacity().max(MAX_SHARED) && !self.open.is_empty() {
            self.close();
        }
        self.open.reserve(len);
        self.len += len as u64;
        &mut self.open
    }

    /// Appends a piece, copied only if it is small.
    pub fn push(&mut self, piece: Bytes) {
        if piece.len() <= MAX_COPIED {
            return self.push_slice(&piece);
        }
        self.close();
        self.len += piece.len() as u64;
        self.done.push(Chunk::Shared(piece));
    }

    /// As [`Chunks::push`], for a piece that is still needed.
    pub fn push_ref(&mut self, piece: &Bytes) {
        if piece.len() <= MAX_COPIED {
            return self.push_slice(piece);
        }
        self.push(piece.clone());
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunks in order, none of them empty, and their length together.
    pub fn finish(mut self) -> (ChunkList, u64) {
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
        let mut chunks = Self { done: ChunkList::new(), open: head, len };
        if len > MAX_COPIED as u64 {
            chunks.close();
        }
        chunks
    }
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
