//! Memory of small tensors: pieces of a block that belongs to the thread that makes them. A piece
//! costs no call of the allocator, since a block is used from its start again once all of its
//! pieces are dropped, by any thread.
//!
//! A thread has two blocks: when the last bytes of one are taken, some of its pieces may still be in
//! use, such as the input of the request whose output is allocated. Those of the other one are older.

use super::buffer::ALIGN;
use bytes::{Buf, BytesMut};
use std::cell::RefCell;

/// Longest piece. A piece that lives long holds its whole block: see [`BLOCK`].
pub const MAX_PIECE: usize = 1 << 10;
/// Size of a block.
const BLOCK: usize = 8 << 10;

#[derive(Default)]
struct ThreadBlocks {
    /// Pieces are taken from this one.
    current: BytesMut,
    previous: BytesMut,
}

impl ThreadBlocks {
    /// A block with place for `size` bytes.
    fn with_place(&mut self, size: usize) -> &mut BytesMut {
        if self.current.capacity() < size && !self.current.try_reclaim(BLOCK) {
            std::mem::swap(&mut self.current, &mut self.previous);
            self.current.reserve(BLOCK);
        }
        &mut self.current
    }
}

thread_local! {
    static THREAD_BLOCKS: RefCell<ThreadBlocks> = RefCell::default();
}

/// A zeroed piece of `len` bytes, aligned to [`ALIGN`]; `None` if it is longer than [`MAX_PIECE`],
/// or this thread ends.
pub fn take_piece(len: usize) -> Option<BytesMut> {
    if len > MAX_PIECE {
        return None;
    }
    let take = |blocks: &RefCell<ThreadBlocks>| {
        let mut blocks = blocks.try_borrow_mut().ok()?;
        // The next piece is aligned, too: only the first one of a block has padding.
        let size = len.next_multiple_of(ALIGN);
        let block = blocks.with_place(size + ALIGN - 1);
        let padding = block.as_ptr().align_offset(ALIGN);
        block.resize(padding + size, 0);
        let mut piece = block.split();
        piece.advance(padding);
        piece.truncate(len);
        Some(piece)
    };
    THREAD_BLOCKS.try_with(take).ok()?
}

#[cfg(test)]
#[path = "thread_block_tests.rs"]
mod tests;
