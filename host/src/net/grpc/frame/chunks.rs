//! What arrived of a message, chunk by chunk, without putting it together first.

use crate::request::buffer::AlignedBuf;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;

/// Tensors are handed on in place when they lie so; others are copied into a block that does.
const ALIGN: usize = 8;
/// Chunks below this size are put together, or a caller who sends single bytes would cost a
/// bookkeeping entry for each.
const TINY: usize = 512;

/// A buffer of several chunks that a message is decoded from.
#[derive(Clone, Default)]
pub struct FrameBuf {
    chunks: VecDeque<Bytes>,
    tiny: BytesMut,
    remaining: usize,
}

impl FrameBuf {
    /// Appends a chunk. After the last one comes [`FrameBuf::seal`].
    pub fn push(&mut self, chunk: Bytes) {
        self.remaining += chunk.len();
        if chunk.is_empty() {
        } else if chunk.len() < TINY && self.chunks.len() >= 8 {
            self.tiny.extend_from_slice(&chunk);
        } else {
            self.flush();
            self.chunks.push_back(chunk);
        }
    }

    /// Makes everything that was pushed readable.
    pub fn seal(&mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        if !self.tiny.is_empty() {
            self.chunks.push_back(self.tiny.split().freeze());
        }
    }
}

impl Buf for FrameBuf {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |c| c)
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "advanced past the end of a message");
        self.remaining -= count;
        while let Some(front) = self.chunks.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.chunks.pop_front();
            if count == 0 {
                return;
            }
        }
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        assert!(len <= self.remaining, "read past the end of a message");
        if len == 0 {
            return Bytes::new();
        }
        if let Some(front) = self.chunks.front_mut()
            && front.len() >= len
            && (front.as_ptr() as usize).is_multiple_of(ALIGN)
        {
            let whole = front.len() == len;
            let out = front.split_to(len);
            if whole {
                self.chunks.pop_front();
            }
            self.remaining -= len;
            return out;
        }
        let mut parts: smallvec::SmallVec<[&[u8]; 32]> = Default::default();
        let mut missing = len;
        for chunk in &self.chunks {
            let part = &chunk[..chunk.len().min(missing)];
            parts.push(part);
            missing -= part.len();
            if missing == 0 {
                break;
            }
        }
        let out = AlignedBuf::copy_of(&parts).into_bytes();
        drop(parts);
        self.advance(len);
        out
    }
}
