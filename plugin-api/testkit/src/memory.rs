//! Memory for a backend under test: blocks between canaries, and pages that cannot be written.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ptr::null_mut;

/// Canary bytes before and behind a block.
const FRONT: usize = 128;
const BACK: usize = 256;
const CANARY: u8 = 0xC5;
/// Contents of a block that the backend must not write any more.
const POISON: u8 = 0xA7;
const PAGE: usize = 4096;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct GuardLine(#[allow(dead_code, reason = "reached through pointers")] [u8; 64]);

/// A block with canaries around it. The backend gets a raw pointer, so all access here is through
/// one, too.
pub struct GuardedBlock {
    lines: *mut [GuardLine],
    offset: usize,
    pub bytes: usize,
}

// SAFETY: the memory is owned by the block; the backend's accesses are what is being checked.
unsafe impl Send for GuardedBlock {}

impl GuardedBlock {
    /// Zeroed; begins `skew` bytes behind a multiple of 64. `None` = out of memory.
    pub fn new(bytes: usize, skew: usize) -> Option<Self> {
        let offset = FRONT + skew;
        let total = offset.checked_add(bytes)?.checked_add(BACK)?;
        let count = total.div_ceil(64);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, GuardLine([CANARY; 64]));
        let block = Self { lines: Box::into_raw(lines.into_boxed_slice()), offset, bytes };
        block.fill(0);
        Some(block)
    }

    pub fn from_bytes(data: &[u8], skew: usize) -> Option<Self> {
        let block = Self::new(data.len(), skew)?;
        // SAFETY: the block has that many bytes and is not shared yet.
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

    pub fn copy(&self) -> Vec<u8> {
        // SAFETY: initialised bytes of the allocation.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.bytes) }.to_vec()
    }

    /// Fills the block with a pattern that reveals later writes.
    pub fn poison(&self) {
        self.fill(POISON);
    }

    pub fn written_since_poison(&self) -> bool {
        self.copy().iter().any(|b| *b != POISON)
    }

    /// Describes what was written around the block.
    pub fn overrun(&self) -> Option<String> {
        // SAFETY: the whole allocation, initialised.
        let all = unsafe { std::slice::from_raw_parts(self.base(), self.lines.len() * 64) };
        let end = self.offset + self.bytes;
        let before = all[..self.offset].iter().position(|b| *b != CANARY);
        if let Some(at) = before {
            return Some(format!("memory {} bytes before its start was written", self.offset - at));
        }
        let behind = all[end..].iter().rposition(|b| *b != CANARY)?;
        Some(format!("{} bytes behind its end were written", behind + 1))
    }
}

impl Drop for GuardedBlock {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`, freed once.
        drop(unsafe { Box::from_raw(self.lines) });
    }
}

/// Read-only pages, followed by one that cannot be accessed.
pub struct ProtectedPages {
    base: *mut u8,
    total: usize,
    data: usize,
    bytes: usize,
}

// SAFETY: the pages are owned by this value.
unsafe impl Send for ProtectedPages {}

impl ProtectedPages {
    /// The data, padded to 64 bytes, ends where the inaccessible page begins.
    pub fn from_bytes(data: &[u8]) -> Option<Self> {
        let padded = data.len().next_multiple_of(64).max(64);
        let length = padded.next_multiple_of(PAGE);
        let total = length + PAGE;
        let flags = MapFlags::PRIVATE;
        // SAFETY: new anonymous memory.
        let base =
            unsafe { mmap_anonymous(null_mut(), total, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let base = base.ok()?.cast::<u8>();
        let pages = Self { base, total, data: length - padded, bytes: data.len() };
        // SAFETY: inside the mapping, which is writable until the next line; then only protections
        // change.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), pages.ptr(), pages.bytes);
            mprotect(base.cast(), length, MprotectFlags::READ).ok()?;
            mprotect(base.add(length).cast(), PAGE, MprotectFlags::empty()).ok()?;
        }
        Some(pages)
    }

    pub fn ptr(&self) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.base.add(self.data) }
    }

    /// Makes the data inaccessible, too.
    pub fn forbid(&self) {
        // SAFETY: the mapping is owned by this value; an access crashes, which is the purpose.
        let _ = unsafe { mprotect(self.base.cast(), self.total, MprotectFlags::empty()) };
    }
}

impl Drop for ProtectedPages {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, unmapped once.
        let _ = unsafe { munmap(self.base.cast(), self.total) };
    }
}
