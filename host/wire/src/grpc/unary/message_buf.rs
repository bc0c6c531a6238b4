//! A received message as a list of chunks, decoded without joining them first.

use bytes::{Buf, Bytes, BytesMut};
use prost::encoding::decode_varint;
use std::collections::VecDeque;
use std::sync::Arc;
use trtserver_base::arena::Arena;
use trtserver_base::ledger::MemoryTag;
use trtserver_models::{InputMemory, ModelTable};
use trtserver_request::buffer::{AlignedBuf, AllocError};

/// Aligned tensors are used zero-copy; others are copied into an aligned block.
const ALIGN: usize = 8;
/// Smaller chunks are joined, so that a client that sends single bytes does not cost a list entry
/// each.
const TINY: usize = 512;

/// A received message as a list of chunks, read through [`Buf`] without joining them.
#[derive(Clone, Default)]
pub struct MessageBuf {
    /// The first chunk, usually the only one.
    front: Bytes,
    rest: VecDeque<Bytes>,
    tiny: BytesMut,
    remaining: usize,
    /// Destination of tensors that are copied.
    arena: Option<Arc<Arena>>,
    /// A tensor was not copied for lack of memory: what was decoded lacks it.
    failed: Option<AllocError>,
    /// What copied tensors are entered under in the ledger.
    tag: MemoryTag,
}

/// Key of the first field, a string: in both generations the name of the model.
const FIRST_TEXT: u8 = 0x0a;
/// Keys of the second field, the version: text in v2, a number in v1.
const VERSION_TEXT: u8 = 0x12;
const VERSION_NUMBER: u8 = 0x10;

/// The model that a message of inference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedModel<'a> {
    pub name: &'a str,
    /// `None` if it is not right behind the name.
    pub version: Option<i64>,
}

impl RequestedModel<'_> {
    /// The memory that the model's inputs are best received into.
    pub fn input_memory(self, models: &ModelTable) -> Option<InputMemory> {
        models.input_memory(self.name, self.version)
    }
}

/// The string at the beginning of `bytes`, with its length before it, if it has at most 127 bytes;
/// and what follows.
fn short_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = bytes.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(*len)).filter(|_| *len < 0x80)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

fn version(bytes: &[u8]) -> Option<i64> {
    match bytes.split_first()? {
        (&VERSION_TEXT, rest) => short_text(rest)?.0.parse().ok(),
        (&VERSION_NUMBER, mut rest) => decode_varint(&mut rest).ok().map(u64::cast_signed),
        _ => None,
    }
}

impl MessageBuf {
    /// The string in the first field, if the message starts with it and it has at most 127 bytes.
    pub fn first_text(&self) -> Option<&str> {
        self.model().map(|model| model.name)
    }

    /// The model whose name is in the first field; see [`MessageBuf::first_text`].
    pub fn model(&self) -> Option<RequestedModel<'_>> {
        let (key, rest) = self.chunk().split_first()?;
        let (name, rest) = short_text(rest).filter(|_| *key == FIRST_TEXT)?;
        Some(RequestedModel { name, version: version(rest) })
    }

    /// The remaining bytes, if they are contiguous.
    pub fn whole(&self) -> Option<&Bytes> {
        self.rest.is_empty().then_some(&self.front)
    }

    /// Why a copy of a tensor failed. prost cannot report that, so its result is not valid then.
    pub fn failed(&self) -> Option<AllocError> {
        self.failed
    }

    /// Copies misaligned tensors into `arena`, and large ones in any case.
    pub fn copy_into(&mut self, arena: Arc<Arena>) {
        self.arena = Some(arena);
    }

    /// Enters copies of tensors under `tag`.
    pub fn set_tag(&mut self, tag: MemoryTag) {
        self.tag = tag;
    }

    /// Appends a chunk. [`MessageBuf::seal`] must follow the last one.
    pub fn push(&mut self, chunk: Bytes) {
        self.remaining += chunk.len();
        if chunk.is_empty() {
        } else if chunk.len() < TINY && self.rest.len() >= 8 {
            self.tiny.extend_from_slice(&chunk);
        } else if self.front.is_empty() {
            self.front = chunk;
        } else {
            self.flush();
            self.rest.push_back(chunk);
        }
    }

    /// Makes all chunks readable.
    pub fn seal(&mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        if !self.tiny.is_empty() {
            self.rest.push_back(self.tiny.split().freeze());
        }
    }
}

impl From<Bytes> for MessageBuf {
    fn from(message: Bytes) -> Self {
        Self { remaining: message.len(), front: message, ..Self::default() }
    }
}

impl Buf for MessageBuf {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        &self.front
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "advanced past the end of a message");
        self.remaining -= count;
        while count >= self.front.len() {
            count -= self.front.len();
            self.front = self.rest.pop_front().unwrap_or_default();
            if count == 0 {
                return;
            }
        }
        self.front.advance(count);
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        assert!(len <= self.remaining, "read past the end of a message");
        if len == 0 {
            return Bytes::new();
        }
        if self.front.len() >= len
            && (len < TINY
                || self.arena.as_ref().is_none_or(|a| a.find_offset(&self.front).is_some()))
            && (self.front.as_ptr() as usize).is_multiple_of(ALIGN)
        {
            let out = self.front.slice(..len);
            self.advance(len);
            return out;
        }
        let mut parts: smallvec::SmallVec<[&[u8]; 32]> = Default::default();
        let mut missing = len;
        for chunk in std::iter::once(&self.front).chain(&self.rest) {
            let part = &chunk[..chunk.len().min(missing)];
            parts.push(part);
            missing -= part.len();
            if missing == 0 {
                break;
            }
        }
        let copy = AlignedBuf::try_copy(self.arena.as_ref(), &parts, self.tag);
        drop(parts);
        self.advance(len);
        match copy {
            Ok(copy) => copy.into_bytes(),
            Err(e) => {
                self.failed = Some(e);
                Bytes::new()
            }
        }
    }
}

#[cfg(test)]
#[path = "message_buf_tests.rs"]
mod tests;
