//! The mapped file of an arena: the table of reference counts, then the blocks.

use crate::error::{Error, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// Limit of blocks; one reference count each.
pub const SLOTS: usize = 1 << 20;
/// Size of the table of reference counts; the blocks follow.
pub const TABLE: usize = SLOTS * size_of::<AtomicU32>();

/// A mapped memory file.
pub struct ArenaMap {
    pub base: NonNull<u8>,
    pub len: usize,
}

// SAFETY: a mapping is plain memory; the types below synchronise access to it.
unsafe impl Send for ArenaMap {}
// SAFETY: a shared `ArenaMap` gives out an address only; the types that use it synchronise their
// accesses.
unsafe impl Sync for ArenaMap {}

impl ArenaMap {
    pub fn new(file: &OwnedFd, len: usize, blocks: ProtFlags) -> Result<Self> {
        let none = std::ptr::null_mut();
        // SAFETY: a new mapping, placed by the system.
        let base = unsafe { rustix::mm::mmap(none, len, blocks, MapFlags::SHARED, file, 0) }
            .map_err(|e| arena_error("mapped", e))?;
        let map = Self {
            base: NonNull::new(base.cast()).ok_or_else(|| arena_error("mapped", "null"))?,
            len,
        };
        if !blocks.contains(ProtFlags::WRITE) {
            let table = ProtFlags::READ | ProtFlags::WRITE;
            let protect = rustix::mm::MprotectFlags::from_bits_retain(table.bits());
            // SAFETY: the pages of the table; the mapping is not shared yet.
            unsafe { rustix::mm::mprotect(base, TABLE, protect) }
                .map_err(|e| arena_error("mapped", e))?;
        }
        Ok(map)
    }

    /// References of the reader to a block.
    pub fn references(&self, slot: u32) -> &AtomicU32 {
        debug_assert!((slot as usize) < SLOTS);
        // SAFETY: inside the table, which is mapped for reading and writing and accessed atomically
        // only.
        unsafe { self.base.cast::<AtomicU32>().add(slot as usize % SLOTS).as_ref() }
    }

    /// Offset of `bytes` in the file, if they are in it.
    pub fn find_offset(&self, bytes: &[u8]) -> Option<usize> {
        let offset = bytes.as_ptr().addr().checked_sub(self.base.as_ptr().addr())?;
        (offset >= TABLE && offset.checked_add(bytes.len())? <= self.len).then_some(offset)
    }

    /// Returns the pages of `len` bytes at `offset`, both multiples of a page, to the system; they
    /// are zero afterwards. False when the system refuses.
    ///
    /// # Safety
    /// The range is not in use.
    pub unsafe fn release_pages(&self, offset: usize, len: usize) -> bool {
        debug_assert!(offset >= TABLE && offset + len <= self.len);
        // SAFETY: inside the mapping, and not in use by the caller's contract.
        unsafe {
            let start = self.base.add(offset).as_ptr().cast();
            rustix::mm::madvise(start, len, Advice::LinuxRemove).is_ok()
        }
    }
}

impl Drop for ArenaMap {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `new`; everything that points into it holds the map.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

pub fn arena_error(what: &str, e: impl std::fmt::Display) -> Error {
    Error::internal(format!("shared memory cannot be {what}: {e}"))
}
