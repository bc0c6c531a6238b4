//! Memory of small tensors: pieces of a block that belongs to the thread that makes them. A piece
//! costs no call of the allocator, since a block is used from its start again once all of its
//! pieces are dropped, by any thread.

use super::buffer::ALIGN;
use bytes::{Buf, BytesMut};
use std::cell::RefCell;

/// Longest piece. A piece that lives long holds its whole block: see [`BLOCK`].
pub const MAX_PIECE: usize = 1 << 10;
/// Size of a block.
const BLOCK: usize = 8 << 10;

thread_local! {
    static THREAD_BLOCK: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// A zeroed piece of `len` bytes, aligned to [`ALIGN`]; `None` if it is longer than [`MAX_PIECE`],
/// or this thread ends.
pub fn take_piece(len: usize) -> Option<BytesMut> {
    if len > MAX_PIECE {
        return None;
    }
    let take = |block: &RefCell<BytesMut>| {
        let mut block = block.try_borrow_mut().ok()?;
        // The next piece is aligned, too: only the first one of a block has padding.
        let size = len.next_multiple_of(ALIGN);
        if block.capacity() < size + ALIGN - 1 {
            block.reserve(BLOCK);
        }
        let padding = block.as_ptr().align_offset(ALIGN);
        block.resize(padding + size, 0);
        let mut piece = block.split();
        piece.advance(padding);
        piece.truncate(len);
        Some(piece)
    };
    THREAD_BLOCK.try_with(take).ok()?
}

#[cfg(test)]
#[path = "thread_block_tests.rs"]
mod tests;
