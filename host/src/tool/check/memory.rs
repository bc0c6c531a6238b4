//! Memory that a backend works in while it is watched: canaries around blocks, pages that cannot be written.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ptr::null_mut;

/// Watched bytes before and behind a block.
const FRONT: usize = 128;
const BACK: usize = 256;
const CANARY: u8 = 0xC5;
/// What is left in a block that the backend must not touch any more.
const SPENT: u8 = 0xA7;
const PAGE: usize = 4096;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "reached through pointers")] [u8; 64]);

/// A block with canaries around it. The backend gets a raw pointer, so all access here is through one, too.
pub struct Block {
    lines: *mut [Line],
    offset: usize,
    pub bytes: usize,
}

// SAFETY: the memory belongs to the block alone; the backend's accesses are what is being checked.
unsafe impl Send for Block {}

impl Block {
    /// Zeroed; begins `skew` bytes behind a multiple of 64. `None` = not so much memory.
    pub fn new(bytes: usize, skew: usize) -> Option<Self> {
        let offset = FRONT + skew;
        let total = offset.checked_add(bytes)?.checked_add(BACK)?;
        let count = total.div_ceil(64);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line([CANARY; 64]));
        let block = Self { lines: Box::into_raw(lines.into_boxed_slice()), offset, bytes };
        block.fill(0);
        Some(block)
    }

    pub fn of(data: &[u8], skew: usize) -> Option<Self> {
        let block = Self::new(data.len(), skew)?;
        // SAFETY: the block has just so many bytes and nobody else knows it yet.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), block.ptr(), data.len()) };
        Some(block)
    }

    fn base(&self) -> *mut u8 {
        self.lines.cast()
    }

    pub fn ptr(&self) -> *mut u8 {
        // SAFETY: the offset lies inside the allocation.
        unsafe { self.base().add(self.offset) }
    }

    fn fill(&self, with: u8) {
        // SAFETY: inside the allocation.
        unsafe { std::ptr::write_bytes(self.ptr(), with, self.bytes) };
    }

    /// What is in it now.
    pub fn copy(&self) -> Vec<u8> {
        // SAFETY: initialised bytes of the allocation.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.bytes) }.to_vec()
    }

    /// From here on nobody may write to it.
    pub fn spend(&self) {
        self.fill(SPENT);
    }

    pub fn touched_since_spent(&self) -> bool {
        self.copy().iter().any(|b| *b != SPENT)
    }

    /// What was written around it, in words.
    pub fn overrun(&self) -> Option<String> {
        // SAFETY: the whole allocation, initialised.
        let all = unsafe { std::slice::from_raw_parts(self.base(), self.lines.len() * 64) };
        let end = self.offset + self.bytes;
        let before = all[..self.offset].iter().position(|b| *b != CANARY);
        if let Some(at) = before {
            return Some(format!(
                "memory was written {} bytes before its beginning",
                self.offset - at
            ));
        }
        let behind = all[end..].iter().rposition(|b| *b != CANARY)?;
        Some(format!("{} bytes behind its end were written", behind + 1))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`, freed once.
        drop(unsafe { Box::from_raw(self.lines) });
    }
}

/// Pages that a backend may only read, and one behind them that it may not even read.
pub struct Pages {
    base: *mut u8,
    total: usize,
    data: usize,
    bytes: usize,
}

// SAFETY: the pages belong to this alone.
unsafe impl Send for Pages {}

impl Pages {
    /// The data, padded to 64 bytes, ends where the forbidden page begins.
    pub fn of(data: &[u8]) -> Option<Self> {
        let padded = data.len().next_multiple_of(64).max(64);
        let room = padded.next_multiple_of(PAGE);
        let total = room + PAGE;
        let flags = MapFlags::PRIVATE;
        // SAFETY: new anonymous memory.
        let base =
            unsafe { mmap_anonymous(null_mut(), total, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let base = base.ok()?.cast::<u8>();
        let pages = Self { base, total, data: room - padded, bytes: data.len() };
        // SAFETY: inside the mapping, which is writable until the next line; then only protections change.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), pages.ptr(), pages.bytes);
            mprotect(base.cast(), room, MprotectFlags::READ).ok()?;
            mprotect(base.add(room).cast(), PAGE, MprotectFlags::empty()).ok()?;
        }
        Some(pages)
    }

    pub fn ptr(&self) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.base.add(self.data) }
    }

    /// From here on nobody may read it either.
    pub fn forbid(&self) {
        // SAFETY: the mapping is this one's; who still reads it is found out, which is the purpose.
        let _ = unsafe { mprotect(self.base.cast(), self.total, MprotectFlags::empty()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, unmapped once.
        let _ = unsafe { munmap(self.base.cast(), self.total) };
    }
}
