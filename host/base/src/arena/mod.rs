//! Shared-memory arena: one process allocates blocks in a memory file, another process reads them
//! without a copy.
//!
//! The file (`memfd`) has no name. It is as large as the arena may ever grow, but only touched
//! pages are in memory; it is freed when the last process that maps it exits. It is sealed against
//! shrinking, so that no process can remove pages that another one uses. Layout: a table of
//! reference counts, one per block, then the blocks.
//!
//! The counts are of references that the reading process holds: [`Arena::share`] increments one,
//! and the reader decrements it when it drops the bytes ([`SharedBytes`]). The owner reuses a block
//! when it has dropped it and the count is 0. It trusts the reader with nothing else: a reader that
//! counts wrongly damages only blocks of this file.

mod blocks;
mod map;
pub mod ring;

use crate::error::{Error, Result};
use blocks::{ArenaBlocks, find_size_class};
use bytes::Bytes;
use map::{ArenaMap, SLOTS, TABLE, arena_error};
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::ProtFlags;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The owner's side: allocates blocks and shares them.
pub struct Arena {
    map: ArenaMap,
    file: OwnedFd,
    blocks: Mutex<ArenaBlocks>,
}

impl Arena {
    /// An empty arena for up to `capacity` bytes of blocks.
    ///
    /// # Errors
    /// The system refuses the file or the address space.
    pub fn new(name: &str, capacity: usize) -> Result<Arc<Self>> {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|e| arena_error("created", e))?;
        let len = TABLE + capacity.next_multiple_of(1 << 21);
        rustix::fs::ftruncate(&file, len as u64).map_err(|e| arena_error("created", e))?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|e| arena_error("sealed", e))?;
        Self::over(file, len)
    }

    /// The owner's side over a file that another process created with [`Arena::new`] and does not
    /// allocate in.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn over_file(file: OwnedFd) -> Result<Arc<Self>> {
        let len = file_size(&file)?;
        Self::over(file, len)
    }

    fn over(file: OwnedFd, len: usize) -> Result<Arc<Self>> {
        let map = ArenaMap::new(&file, len, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Arc::new(Self { map, file, blocks: Mutex::new(ArenaBlocks::new()) }))
    }

    /// The file, to be sent to the other process.
    pub fn file(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Bytes of the file that are in memory.
    pub fn resident(&self) -> u64 {
        resident_bytes(&self.file)
    }

    /// A block of `len` bytes, aligned to 256; zeroed if asked for, else with old content. `None`
    /// when exhausted.
    pub fn alloc(self: &Arc<Self>, len: usize, zeroed: bool) -> Option<ArenaBlock> {
        let class = find_size_class(len)?;
        let mut blocks = self.lock();
        let slot = blocks.take(class, &self.map)?;
        let (offset, dirty) = blocks.mark_used(slot, len);
        drop(blocks);
        // SAFETY: inside the mapping: the whole size class of a block is.
        let ptr = unsafe { self.map.base.add(offset) };
        if zeroed {
            // SAFETY: the block was just allocated, exclusively.
            unsafe { ptr.write_bytes(0, len.min(dirty)) };
        }
        Some(ArenaBlock { arena: Arc::clone(self), slot, ptr, len })
    }

    /// Offset of `bytes` in the file, if they are in one of its blocks.
    pub fn find_offset(&self, bytes: &[u8]) -> Option<u64> {
        self.map.find_offset(bytes).map(|offset| offset as u64)
    }

    /// Adds a reference of the reader to `bytes`, part of a block that the caller holds. `None` if
    /// they are not in a block.
    pub fn share(&self, bytes: &[u8]) -> Option<SharedRange> {
        let offset = self.map.find_offset(bytes)?;
        let slot = self.lock().at(offset)?;
        self.map.references(slot).fetch_add(1, Ordering::Relaxed);
        Some(SharedRange { slot, offset: offset as u64 })
    }

    /// Removes a reference that was not sent to the reader.
    pub fn unshare(&self, slot: u32) {
        self.map.references(slot).fetch_sub(1, Ordering::Release);
    }

    /// Whether the reader has references to a block.
    pub fn is_shared(&self, slot: u32) -> bool {
        self.map.references(slot).load(Ordering::Acquire) > 0
    }

    /// Removes all references, because the reading process has ended.
    pub fn unshare_all(&self) {
        let count = self.lock().count();
        (0..count).for_each(|slot| self.map.references(slot).store(0, Ordering::Release));
    }

    fn lock(&self) -> MutexGuard<'_, ArenaBlocks> {
        self.blocks.lock()
    }
}

/// An allocated block. Dropping it frees it as soon as the reader has no reference to it.
pub struct ArenaBlock {
    arena: Arc<Arena>,
    slot: u32,
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: a block is exclusively owned memory, like a `Vec<u8>`.
unsafe impl Send for ArenaBlock {}
// SAFETY: shared references give only the address.
unsafe impl Sync for ArenaBlock {}

impl ArenaBlock {
    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for ArenaBlock {
    fn drop(&mut self) {
        self.arena.lock().give_back(self.slot, &self.arena.map);
    }
}

/// Part of a block, with a reference of the reader.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedRange {
    pub slot: u32,
    pub offset: u64,
}

/// The reader's side: maps the file and checks offsets.
pub struct ArenaReader {
    map: ArenaMap,
    file: OwnedFd,
}

impl ArenaReader {
    /// Maps the file of an [`Arena`] in another process.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn new(file: &OwnedFd) -> Result<Arc<Self>> {
        let map = ArenaMap::new(file, file_size(file)?, ProtFlags::READ)?;
        let file = file.try_clone().map_err(|e| arena_error("mapped", e))?;
        Ok(Arc::new(Self { map, file }))
    }

    /// Bytes of the file that are in memory.
    pub fn resident(&self) -> u64 {
        resident_bytes(&self.file)
    }

    /// `len` bytes at `offset`. The reference to `slot`, if there is one, is released when the last
    /// user drops them.
    ///
    /// # Errors
    /// The range is not in the file.
    pub fn bytes(self: &Arc<Self>, offset: u64, len: u64, slot: Option<u32>) -> Result<Bytes> {
        let inside = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let inside = inside.filter(|(offset, len)| {
            *offset >= TABLE && offset.checked_add(*len).is_some_and(|end| end <= self.map.len)
        });
        let Some((offset, len)) = inside.filter(|_| slot.is_none_or(|s| (s as usize) < SLOTS))
        else {
            return Err(Error::internal(format!(
                "invalid memory range: {len} bytes at {offset} in shared memory of {} bytes",
                self.map.len
            )));
        };
        // Releases the reference also when there is nothing to read.
        let shared = SharedBytes { reader: Arc::clone(self), offset, len, slot };
        Ok(if len == 0 { Bytes::new() } else { Bytes::from_owner(shared) })
    }
}

/// Bytes of the pages that a memory file has; 0 if the system does not tell.
fn resident_bytes(file: &OwnedFd) -> u64 {
    rustix::fs::fstat(file).map_or(0, |stat| stat.st_blocks as u64 * 512)
}

/// Size of an arena's file.
fn file_size(file: &OwnedFd) -> Result<usize> {
    let len = size_of_sealed(file)?;
    if len <= TABLE {
        return Err(arena_error("mapped", "not an arena file"));
    }
    Ok(len)
}

/// Size of a memory file; the seal keeps it.
fn size_of_sealed(file: &OwnedFd) -> Result<usize> {
    let seals = rustix::fs::fcntl_get_seals(file).map_err(|e| arena_error("mapped", e))?;
    if !seals.contains(SealFlags::SHRINK) {
        return Err(arena_error("mapped", "not a sealed file"));
    }
    Ok(rustix::fs::fstat(file).map_err(|e| arena_error("mapped", e))?.st_size as usize)
}

/// Bytes of a block that another process owns.
struct SharedBytes {
    reader: Arc<ArenaReader>,
    offset: usize,
    len: usize,
    slot: Option<u32>,
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: inside the mapping, which the reader keeps. The owner must not write shared
        // bytes; an owner that does changes their values, and every value is a valid `u8`.
        unsafe {
            std::slice::from_raw_parts(self.reader.map.base.add(self.offset).as_ptr(), self.len)
        }
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.reader.map.references(slot).fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
