//! Bodies of responses, for both wires: large tensors are zero-copy chunks of their own, small
//! pieces are copied into a shared buffer, which saves writes to the socket.

use super::spare_buffer::{give_back, take_buffer};
use super::unread::{ConnectionUnread, MIN_COUNTED};
use bytes::{Buf, Bytes};
use smallvec::SmallVec;
use std::io::Cursor;
use std::sync::Arc;
use trtserver_base::error::Result;

/// The chunks of a body, in order.
pub type ChunkList = SmallVec<[Chunk; 2]>;

/// Contiguous bytes of a body.
pub struct Chunk {
    data: ChunkBytes,
    /// Where the bytes that are left are counted as unread.
    unread: Option<Arc<ConnectionUnread>>,
}

impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Chunk").field(&self.remaining()).finish()
    }
}

enum ChunkBytes {
    Shared(Bytes),
    /// Has one owner: `Bytes` would allocate a reference count.
    Owned(Cursor<Vec<u8>>),
}

impl Chunk {
    /// A part of a response that was counted as a response of its stream until here, so that it
    /// exists in any case.
    pub fn counted(data: impl Into<Self>, unread: Option<&Arc<ConnectionUnread>>) -> Self {
        let mut chunk = data.into();
        if let Some(unread) = unread
            && chunk.remaining() >= MIN_COUNTED
        {
            unread.count_unlimited(chunk.remaining());
            chunk.set_counted(unread);
        }
        chunk
    }

    /// Ends the count when dropped; the caller has counted the bytes.
    pub fn set_counted(&mut self, unread: &Arc<ConnectionUnread>) {
        self.unread = Some(Arc::clone(unread));
    }
}

impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Self {
        Self { data: ChunkBytes::Shared(bytes), unread: None }
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self { data: ChunkBytes::Owned(Cursor::new(bytes)), unread: None }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        match &self.data {
            ChunkBytes::Shared(bytes) => bytes.remaining(),
            ChunkBytes::Owned(bytes) => bytes.remaining(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match &self.data {
            ChunkBytes::Shared(bytes) => bytes.chunk(),
            ChunkBytes::Owned(bytes) => bytes.chunk(),
        }
    }

    fn advance(&mut self, count: usize) {
        match &mut self.data {
            ChunkBytes::Shared(bytes) => bytes.advance(count),
            ChunkBytes::Owned(bytes) => bytes.advance(count),
        }
        if let Some(unread) = &self.unread {
            unread.release(count);
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(unread) = self.unread.take() {
            unread.release(self.remaining());
        }
        if let ChunkBytes::Owned(bytes) = &mut self.data {
            give_back(std::mem::take(bytes.get_mut()));
        }
    }
}

/// Counts the chunks of a body as unread, unless they are small.
///
/// # Errors
/// The client reads too little; see [`ConnectionUnread::count`].
pub fn count_unread(chunks: &mut [Chunk], unread: &Arc<ConnectionUnread>) -> Result<()> {
    let large = |chunk: &&mut Chunk| chunk.remaining() >= MIN_COUNTED;
    let bytes: usize = chunks.iter_mut().filter(large).map(|chunk| chunk.remaining()).sum();
    if bytes > 0 {
        unread.count(bytes)?;
        chunks.iter_mut().filter(large).for_each(|chunk| chunk.set_counted(unread));
    }
    Ok(())
}

/// Pieces up to this size are copied into a shared buffer; larger ones become chunks of their own.
const MAX_COPIED: usize = 4 << 10;
/// A shared buffer does not grow beyond this size.
const MAX_SHARED: usize = 16 << 10;

/// How many bytes of a piece of `len` bytes are copied.
pub fn copied_bytes(len: usize) -> usize {
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
        Self { open: take_buffer(copied), ..Self::default() }
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
        if self.open.capacity() == 0 {
            self.open = take_buffer(len);
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
        self.done.push(piece.into());
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
            self.done.push(std::mem::take(&mut self.open).into());
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
