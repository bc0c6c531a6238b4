//! Shared memory: blocks of a memory file that one process allocates and another one reads.
//!
//! The file has no name and is as large as memory could ever be, but holds only the pages that were
//! touched; it goes when the last process that maps it goes. It cannot shrink, so that no process can
//! take pages away from under another one. Layout: a table of words, one per block, then the blocks.
//!
//! Who reads a block in the other process counts it in the block's word ([`Arena::lend`]) and counts it off
//! when it is read ([`Borrowed`]); the owner uses a block again when he has dropped it and its word is 0. The owner
//! never believes anything but that; a reader that counts wrongly harms only the blocks of this file.

use crate::error::{Error, Result};
use bytes::Bytes;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smallest block; also the alignment of every block, more than a cache line so that neighbours do not share one.
const LEAST: usize = 256;
/// Blocks that there can be; one word each.
const SLOTS: usize = 1 << 20;
/// Where blocks begin.
const TABLE: usize = SLOTS * size_of::<AtomicU32>();
/// Bytes of free blocks that stay in memory; what goes beyond is given back to the system at once.
const KEEP: usize = 64 << 20;
/// Powers of two from [`LEAST`] on.
const CLASSES: usize = 40;
/// Blocks looked at when one of the lent ones may have come back.
const SWEEP: usize = 8;

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
    state: Mutex<State>,
}

struct State {
    /// Blocks ever made, ascending by offset; the index is the slot.
    blocks: Vec<Carved>,
    /// Slots by class: free ones, and those dropped here that somebody may still read.
    free: Vec<Vec<u32>>,
    lent: Vec<std::collections::VecDeque<u32>>,
    /// Where the next new block begins.
    end: usize,
    /// Bytes of free blocks that are in memory.
    kept: usize,
}

struct Carved {
    offset: usize,
    class: u8,
    /// Bytes from the start that may not be zero.
    dirty: usize,
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
        let state = State {
            blocks: Vec::new(),
            free: vec![Vec::new(); CLASSES],
            lent: (0..CLASSES).map(|_| Default::default()).collect(),
            end: TABLE,
            kept: 0,
        };
        Ok(Arc::new(Self { map, file, state: Mutex::new(state) }))
    }

    /// The file, for the process that is to read or own the blocks.
    pub fn file(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A block of `len` bytes, aligned to 256; `zeroed` or with what was there before. `None` when there is no room.
    pub fn alloc(self: &Arc<Self>, len: usize, zeroed: bool) -> Option<Block> {
        let class = class_of(len)?;
        let mut state = self.lock();
        let slot = state.take(class, &self.map)?;
        let carved = &mut state.blocks[slot as usize];
        let (offset, dirty) = (carved.offset, carved.dirty);
        carved.dirty = dirty.max(len);
        drop(state);
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
        let state = self.lock();
        let slot = state.blocks.partition_point(|b| b.offset <= offset).checked_sub(1)? as u32;
        self.map.word(slot).fetch_add(1, Ordering::Relaxed);
        Some(Loan { slot, offset: offset as u64 })
    }

    /// The other process is gone: nothing is lent any more.
    pub fn forget_loans(&self) {
        let blocks = self.lock().blocks.len() as u32;
        (0..blocks).for_each(|slot| self.map.word(slot).store(0, Ordering::Release));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, slot: u32) {
        let mut state = self.lock();
        let class = usize::from(state.blocks[slot as usize].class);
        if self.map.word(slot).load(Ordering::Acquire) == 0 {
            state.free(slot, &self.map);
        } else {
            state.lent[class].push_back(slot);
        }
    }
}

/// The class whose blocks have room for `len` bytes.
fn class_of(len: usize) -> Option<usize> {
    let class =
        len.max(LEAST).checked_next_power_of_two()?.trailing_zeros() - LEAST.trailing_zeros();
    Some(class as usize).filter(|c| *c < CLASSES)
}

impl State {
    fn take(&mut self, class: usize, map: &Map) -> Option<u32> {
        for _ in 0..self.lent[class].len().min(SWEEP) {
            let slot = self.lent[class].pop_front()?;
            if map.word(slot).load(Ordering::Acquire) == 0 {
                self.free(slot, map);
                break;
            }
            self.lent[class].push_back(slot);
        }
        if let Some(slot) = self.free[class].pop() {
            let carved = &self.blocks[slot as usize];
            self.kept -= carved.dirty;
            return Some(slot);
        }
        let size = LEAST << class;
        // Blocks of a page or more begin on a page, so that their pages can be given back.
        let offset = self.end.next_multiple_of(size.min(rustix::param::page_size()));
        if self.blocks.len() >= SLOTS || offset.checked_add(size)? > map.len {
            return None;
        }
        self.blocks.push(Carved { offset, class: class as u8, dirty: 0 });
        self.end = offset + size;
        Some((self.blocks.len() - 1) as u32)
    }

    fn free(&mut self, slot: u32, map: &Map) {
        let carved = &mut self.blocks[slot as usize];
        let size = LEAST << carved.class;
        if self.kept + carved.dirty > KEEP && size >= rustix::param::page_size() {
            // SAFETY: whole pages of a block that nobody uses, see `take`.
            let given = unsafe {
                let start = map.base.add(carved.offset).as_ptr().cast();
                rustix::mm::madvise(start, size, Advice::LinuxRemove)
            };
            if given.is_ok() {
                carved.dirty = 0;
            }
        }
        self.kept += carved.dirty;
        let class = usize::from(carved.class);
        self.free[class].push(slot);
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
        self.arena.give_back(self.slot);
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
mod tests {
    use super::*;

    fn arena() -> Arc<Arena> {
        Arena::new("test", 1 << 30).unwrap()
    }

    fn fill(block: &Block, value: u8) {
        // SAFETY: the block is the test's.
        unsafe { block.ptr.write_bytes(value, block.len) };
    }

    fn read(block: &Block) -> &[u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(block.ptr.as_ptr(), block.len) }
    }

    #[test]
    fn blocks_are_aligned_zeroed_and_used_again() {
        let arena = arena();
        for len in [0, 1, 256, 257, 100_000] {
            let block = arena.alloc(len, true).unwrap();
            assert!(block.ptr.as_ptr().addr().is_multiple_of(64));
            assert_eq!(read(&block), vec![0; len]);
            fill(&block, 7);
            let at = block.ptr;
            drop(block);
            let again = arena.alloc(len, false).unwrap();
            assert_eq!((again.ptr, read(&again)), (at, &vec![7; len][..]));
            drop(again);
            assert_eq!(read(&arena.alloc(len, true).unwrap()), vec![0; len]);
        }
        assert!(arena.alloc(2 << 30, true).is_none());
        assert!(arena.alloc(usize::MAX, true).is_none());
    }

    #[test]
    fn what_is_lent_is_not_used_again() {
        let owner = arena();
        let reader = Reader::new(&owner.file().try_clone_to_owned().unwrap()).unwrap();
        let block = owner.alloc(1000, true).unwrap();
        fill(&block, 3);
        let at = block.ptr;
        // Two answers out of one block, as of a batch that was cut up.
        let loans = [0, 500].map(|from| owner.lend(&read(&block)[from..from + 500]).unwrap());
        drop(block);
        let [a, b] = loans.map(|l| reader.bytes(l.offset, 500, Some(l.slot)).unwrap());
        assert_eq!((a.as_ref(), b.as_ref()), (&[3; 500][..], &[3; 500][..]));
        assert_ne!(owner.alloc(1000, false).unwrap().ptr, at);
        drop(a);
        let held = owner.alloc(1000, false).unwrap();
        assert_ne!(held.ptr, at);
        drop(b);
        let found = [owner.alloc(1000, false).unwrap(), owner.alloc(1000, false).unwrap()];
        assert!(found.iter().any(|b| b.ptr == at));
    }

    #[test]
    fn only_what_is_in_the_file_can_be_read() {
        let owner = arena();
        let reader = Reader::new(&owner.file().try_clone_to_owned().unwrap()).unwrap();
        for (offset, len) in [(0, 1), (u64::MAX, 1), (TABLE as u64, u64::MAX), (1 << 40, 1)] {
            assert!(reader.bytes(offset, len, None).is_err(), "{offset} {len}");
        }
        assert!(reader.bytes(TABLE as u64, 1, Some(u32::MAX)).is_err());
        assert!(owner.offset_of(b"elsewhere").is_none());
        assert!(owner.lend(b"elsewhere").is_none());
    }

    #[test]
    fn free_memory_goes_back_to_the_system() {
        let arena = arena();
        let touched = || rustix::fs::fstat(&arena.file).unwrap().st_blocks * 512;
        let blocks: Vec<_> = (0..4).map(|_| arena.alloc(KEEP, false).unwrap()).collect();
        blocks.iter().for_each(|b| fill(b, 1));
        assert!(touched() >= 4 * KEEP as i64);
        drop(blocks);
        assert!(touched() <= KEEP as i64 + (1 << 20), "{}", touched());
        let blocks: Vec<_> = (0..4).map(|_| arena.alloc(KEEP, true).unwrap()).collect();
        assert!(blocks.iter().all(|b| read(b).iter().all(|byte| *byte == 0)));
    }
}
