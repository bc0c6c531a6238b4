//! Shared memory: blocks of a memory file that one process allocates and another one reads.
//!
//! The file has no name and is as large as memory could ever be, but holds only the pages that were
//! touched; it goes when the last process that maps it goes. It cannot shrink, so that no process can
//! take pages away from under another one. Layout: a table of words, one per block, then the blocks.
//!
//! Who reads a block in the other process counts it in the block's word ([`Arena::lend`]) and counts it off
//! when it is read ([`Borrowed`]); the owner uses a block again when he has dropped it and its word is 0. The owner
//! never believes anything but that; a reader that counts wrongly harms only the blocks of this file.

mod blocks; // which blocks there are, and which are free

use crate::error::{Error, Result};
use crate::sync::{Mutex, MutexGuard};
use blocks::{Blocks, class_of};
use bytes::Bytes;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Blocks that there can be; one word each.
const SLOTS: usize = 1 << 20;
/// Where blocks begin.
const TABLE: usize = SLOTS * size_of::<AtomicU32>();

/// A mapped memory file.
struct Map {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is memory; who may touch which part of it when is for the types below.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    fn new(file: &OwnedFd, len: usize, blocks: ProtFlags) -> Result<Self> {
        let none = std::ptr::null_mut();
        // SAFETY: a fresh mapping, placed by the system.
        let base = unsafe { rustix::mm::mmap(none, len, blocks, MapFlags::SHARED, file, 0) }
            .map_err(|e| failed("mapped", e))?;
        let map =
            Self { base: NonNull::new(base.cast()).ok_or_else(|| failed("mapped", "null"))?, len };
        if !blocks.contains(ProtFlags::WRITE) {
            let table = ProtFlags::READ | ProtFlags::WRITE;
            let protect = rustix::mm::MprotectFlags::from_bits_retain(table.bits());
            // SAFETY: the table's own pages; nobody else knows the mapping yet.
            unsafe { rustix::mm::mprotect(base, TABLE, protect) }
                .map_err(|e| failed("mapped", e))?;
        }
        Ok(map)
    }

    fn word(&self, slot: u32) -> &AtomicU32 {
        debug_assert!((slot as usize) < SLOTS);
        // SAFETY: inside the table, which is mapped for reading and writing and accessed atomically only.
        unsafe { self.base.cast::<AtomicU32>().add(slot as usize % SLOTS).as_ref() }
    }

    /// Where `bytes` begin in the file, if they lie in it.
    fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let offset = bytes.as_ptr().addr().checked_sub(self.base.as_ptr().addr())?;
        (offset >= TABLE && offset.checked_add(bytes.len())? <= self.len).then_some(offset)
    }
}

impl Map {
    /// Gives the pages of `len` bytes at `offset` back to the system, both multiples of a page; they are zero
    /// afterwards. False when the system refuses.
    ///
    /// # Safety
    /// Nobody uses what lies there.
    unsafe fn forget(&self, offset: usize, len: usize) -> bool {
        debug_assert!(offset >= TABLE && offset + len <= self.len);
        // SAFETY: inside the mapping, and nobody's by the caller's promise.
        unsafe {
            let start = self.base.add(offset).as_ptr().cast();
            rustix::mm::madvise(start, len, Advice::LinuxRemove).is_ok()
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `new`; whatever points into it holds the map.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

fn failed(what: &str, e: impl std::fmt::Display) -> Error {
    Error::internal(format!("shared memory cannot be {what}: {e}"))
}

/// The owner's side: allocates blocks.
pub struct Arena {
    map: Map,
    file: OwnedFd,
    blocks: Mutex<Blocks>,
}

impl Arena {
    /// An empty arena that can hold `most` bytes of blocks.
    ///
    /// # Errors
    /// The system refuses the file or the address space.
    pub fn new(name: &str, most: usize) -> Result<Arc<Self>> {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|e| failed("made", e))?;
        let len = TABLE + most.next_multiple_of(1 << 21);
        rustix::fs::ftruncate(&file, len as u64).map_err(|e| failed("made", e))?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|e| failed("sealed", e))?;
        Self::over(file, len)
    }

    /// An arena over a file that another process made with [`Arena::new`] and in which nobody else allocates.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn over_file(file: OwnedFd) -> Result<Arc<Self>> {
        let len = size(&file)?;
        Self::over(file, len)
    }

    fn over(file: OwnedFd, len: usize) -> Result<Arc<Self>> {
        let map = Map::new(&file, len, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Arc::new(Self { map, file, blocks: Mutex::new(Blocks::new()) }))
    }

    /// The file, for the process that is to read or own the blocks.
    pub fn file(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A block of `len` bytes, aligned to 256; `zeroed` or with what was there before. `None` when there is no room.
    pub fn alloc(self: &Arc<Self>, len: usize, zeroed: bool) -> Option<Block> {
        let class = class_of(len)?;
        let mut blocks = self.lock();
        let slot = blocks.take(class, &self.map)?;
        let (offset, dirty) = blocks.used(slot, len);
        drop(blocks);
        // SAFETY: inside the mapping: blocks are made with their whole class in it.
        let ptr = unsafe { self.map.base.add(offset) };
        if zeroed {
            // SAFETY: the block is this call's alone.
            unsafe { ptr.write_bytes(0, len.min(dirty)) };
        }
        Some(Block { arena: Arc::clone(self), slot, ptr, len })
    }

    /// Where `bytes` begin in the file, if they lie in one of its blocks.
    pub fn offset_of(&self, bytes: &[u8]) -> Option<u64> {
        self.map.offset_of(bytes).map(|offset| offset as u64)
    }

    /// Counts `bytes`, part of a block that the caller holds, as read by the other process until it says
    /// otherwise. `None` if they lie in no block.
    pub fn lend(&self, bytes: &[u8]) -> Option<Loan> {
        let offset = self.map.offset_of(bytes)?;
        let slot = self.lock().at(offset)?;
        self.map.word(slot).fetch_add(1, Ordering::Relaxed);
        Some(Loan { slot, offset: offset as u64 })
    }

    /// The other process will not hear of this loan.
    pub fn take_back(&self, slot: u32) {
        self.map.word(slot).fetch_sub(1, Ordering::Release);
    }

    /// The other process is gone: nothing is lent any more.
    pub fn forget_loans(&self) {
        let count = self.lock().count();
        (0..count).for_each(|slot| self.map.word(slot).store(0, Ordering::Release));
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock()
    }
}

/// A block, until it is dropped.
pub struct Block {
    arena: Arc<Arena>,
    slot: u32,
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: a block is memory of its own, like a `Vec<u8>`.
unsafe impl Send for Block {}
// SAFETY: shared access gives the address only.
unsafe impl Sync for Block {}

impl Block {
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

impl Drop for Block {
    fn drop(&mut self) {
        self.arena.lock().give_back(self.slot, &self.arena.map);
    }
}

/// Part of a block that the other process may read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loan {
    pub slot: u32,
    pub offset: u64,
}

/// The reader's side.
pub struct Reader {
    map: Map,
}

impl Reader {
    /// Maps the file of an [`Arena`] that is in another process.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn new(file: &OwnedFd) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { map: Map::new(file, size(file)?, ProtFlags::READ)? }))
    }

    /// `len` bytes at `offset`; counted off in the word of `slot`, if there is one, when the last user drops them.
    ///
    /// # Errors
    /// They do not lie in the file.
    pub fn bytes(self: &Arc<Self>, offset: u64, len: u64, slot: Option<u32>) -> Result<Bytes> {
        let inside = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let inside = inside.filter(|(offset, len)| {
            *offset >= TABLE && offset.checked_add(*len).is_some_and(|end| end <= self.map.len)
        });
        let Some((offset, len)) = inside.filter(|_| slot.is_none_or(|s| (s as usize) < SLOTS))
        else {
            return Err(Error::internal(format!(
                "{len} bytes at {offset} are not in the shared memory of {} bytes",
                self.map.len
            )));
        };
        // Counts the loan off even when there is nothing to read.
        let borrowed = Borrowed { reader: Arc::clone(self), offset, len, slot };
        Ok(if len == 0 { Bytes::new() } else { Bytes::from_owner(borrowed) })
    }
}

/// What `size` the file has; sealed, so that it stays so.
fn size(file: &OwnedFd) -> Result<usize> {
    let seals = rustix::fs::fcntl_get_seals(file).map_err(|e| failed("mapped", e))?;
    let len = rustix::fs::fstat(file).map_err(|e| failed("mapped", e))?.st_size as usize;
    if !seals.contains(SealFlags::SHRINK) || len <= TABLE {
        return Err(failed("mapped", "not a file of this server"));
    }
    Ok(len)
}

/// Bytes of a block that lives in another process.
struct Borrowed {
    reader: Arc<Reader>,
    offset: usize,
    len: usize,
    slot: Option<u32>,
}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: inside the mapping, which the reader keeps. That the owner no longer writes a block that he has
        // lent is his promise; a process that breaks it spoils bytes, which any value of is valid for `u8`.
        unsafe {
            std::slice::from_raw_parts(self.reader.map.base.add(self.offset).as_ptr(), self.len)
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.reader.map.word(slot).fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
