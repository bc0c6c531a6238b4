//! Block allocator of an arena: size classes of powers of two, carved one after another, reused by
//! class.
//!
//! A block is free, allocated, or retained: dropped by its user, but still referenced by the
//! reading process. When the arena is exhausted, a larger free block is used, or free blocks at the
//! end are uncarved, so that their space can serve other sizes.

use super::map::{ArenaMap, SLOTS, TABLE};
use rustix::param::page_size;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Smallest block and the alignment of all: more than a cache line, so that neighbours do not share
/// one.
const MIN_BLOCK: usize = 256;
/// Bytes of free blocks that stay resident; the pages of further ones are returned to the system at
/// once.
pub const MAX_RESIDENT: usize = 64 << 20;
/// Size classes: powers of two from [`MIN_BLOCK`] on.
const CLASSES: usize = 40;
/// Retained blocks checked at each allocation: their references may have been released.
const SWEEP: usize = 8;
/// A class is cold when the last this many allocations were of other classes. The pages of its free
/// blocks are returned first.
const COLD: u64 = 64;

/// Allocator of the blocks of one arena: knows which are free, allocated or retained. Offsets and
/// sizes are in bytes.
pub struct ArenaBlocks {
    /// Ascending by offset; the index is the slot.
    all: Vec<CarvedBlock>,
    /// Free slots by class.
    free: Vec<Vec<u32>>,
    /// Slots of retained blocks, the one checked longest ago first.
    retained: VecDeque<u32>,
    /// Offset of the next new block. Everything from there on is zero.
    end: usize,
    /// Resident bytes of free blocks, by class and in total.
    resident: [usize; CLASSES],
    resident_total: usize,
    /// Allocations so far, and their number at the last one of each class.
    allocations: u64,
    last_use: [u64; CLASSES],
}

struct CarvedBlock {
    offset: usize,
    class: u8,
    /// Bytes from the start that may not be zero.
    dirty: usize,
}

/// The smallest class for `len` bytes.
pub fn find_size_class(len: usize) -> Option<usize> {
    let class = len.max(MIN_BLOCK).checked_next_power_of_two()?.trailing_zeros()
        - MIN_BLOCK.trailing_zeros();
    Some(class as usize).filter(|c| *c < CLASSES)
}

impl ArenaBlocks {
    pub fn new() -> Self {
        Self {
            all: Vec::new(),
            free: vec![Vec::new(); CLASSES],
            retained: VecDeque::new(),
            end: TABLE,
            resident: [0; CLASSES],
            resident_total: 0,
            allocations: 0,
            last_use: [0; CLASSES],
        }
    }

    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// The block that contains `offset`.
    pub fn at(&self, offset: usize) -> Option<u32> {
        let behind = self.all.partition_point(|block| block.offset <= offset);
        behind.checked_sub(1).map(|slot| slot as u32)
    }

    /// Offset of a block and how much of it may be non-zero, before `len` bytes of it are used.
    pub fn mark_used(&mut self, slot: u32, len: usize) -> (usize, usize) {
        let block = &mut self.all[slot as usize];
        let before = block.dirty;
        block.dirty = before.max(len);
        (block.offset, before)
    }

    /// Allocates a block of this class or a larger one; `None` when the arena is exhausted.
    pub fn take(&mut self, class: usize, map: &ArenaMap) -> Option<u32> {
        self.allocations += 1;
        self.last_use[class] = self.allocations;
        self.sweep(SWEEP, map);
        let found = self.pop(class).or_else(|| self.carve(class, map));
        if found.is_some() {
            return found;
        }
        // Exhausted: check all retained blocks before refusing.
        self.sweep(self.retained.len(), map);
        let larger = (class..CLASSES).find_map(|class| self.pop(class));
        larger.or_else(|| {
            self.uncarve(map);
            self.carve(class, map)
        })
    }

    /// Frees a block, or lists it as retained while the reader has references to it.
    pub fn give_back(&mut self, slot: u32, map: &ArenaMap) {
        if map.references(slot).load(Ordering::Acquire) == 0 {
            self.free(slot, map);
        } else {
            self.retained.push_back(slot);
        }
    }

    /// Checks `count` of the retained blocks, and frees those whose references were released.
    fn sweep(&mut self, count: usize, map: &ArenaMap) {
        for _ in 0..count.min(self.retained.len()) {
            if let Some(slot) = self.retained.pop_front() {
                self.give_back(slot, map);
            }
        }
    }

    fn pop(&mut self, class: usize) -> Option<u32> {
        let slot = self.free[class].pop()?;
        let dirty = self.all[slot as usize].dirty;
        self.resident[class] -= dirty;
        self.resident_total -= dirty;
        Some(slot)
    }

    fn carve(&mut self, class: usize, map: &ArenaMap) -> Option<u32> {
        let size = MIN_BLOCK << class;
        // Blocks of a page or more are page-aligned, so that their pages can be returned.
        let offset = self.end.next_multiple_of(size.min(page_size()));
        if self.all.len() >= SLOTS || offset.checked_add(size)? > map.len {
            return None;
        }
        self.all.push(CarvedBlock { offset, class: class as u8, dirty: 0 });
        self.end = offset + size;
        Some(self.count() - 1)
    }

    fn free(&mut self, slot: u32, map: &ArenaMap) {
        let block = &self.all[slot as usize];
        let (class, dirty) = (usize::from(block.class), block.dirty);
        if self.resident_total + dirty > MAX_RESIDENT {
            self.release_cold(map);
        }
        if self.resident_total + dirty > MAX_RESIDENT {
            self.release_pages(slot, map);
        }
        let dirty = self.all[slot as usize].dirty;
        self.resident[class] += dirty;
        self.resident_total += dirty;
        self.free[class].push(slot);
    }

    /// Returns the pages of a free block to the system. Blocks below a page share theirs and keep
    /// it.
    fn release_pages(&mut self, slot: u32, map: &ArenaMap) {
        let block = &mut self.all[slot as usize];
        let size = MIN_BLOCK << block.class;
        // SAFETY: whole pages of the block, see `carve`, which is free.
        if size >= page_size() && unsafe { map.release_pages(block.offset, size) } {
            block.dirty = 0;
        }
    }

    /// Returns the pages of free blocks in cold classes.
    fn release_cold(&mut self, map: &ArenaMap) {
        for class in 0..CLASSES {
            if self.resident[class] == 0 || self.allocations - self.last_use[class] < COLD {
                continue;
            }
            let slots = std::mem::take(&mut self.free[class]);
            for slot in &slots {
                let before = self.all[*slot as usize].dirty;
                if before > 0 {
                    self.release_pages(*slot, map);
                }
                let released = before - self.all[*slot as usize].dirty;
                self.resident[class] -= released;
                self.resident_total -= released;
            }
            self.free[class] = slots;
        }
    }

    /// Removes the free blocks at the end, so that others can be carved there.
    fn uncarve(&mut self, map: &ArenaMap) {
        let mut is_free = vec![false; self.all.len()];
        self.free.iter().flatten().for_each(|slot| is_free[*slot as usize] = true);
        let kept = is_free.iter().rposition(|free| !free).map_or(0, |last| last + 1);
        let Some(first) = self.all.get(kept) else { return };
        let (page, begin) = (page_size(), first.offset);
        let (from, to) =
            (begin.next_multiple_of(page), self.end.next_multiple_of(page).min(map.len));
        // SAFETY: whole pages after the last block that is not free.
        if from < to && !unsafe { map.release_pages(from, to - from) } {
            return;
        }
        // SAFETY: the rest of the first page, which belongs to the free blocks; inside the mapping.
        unsafe { map.base.add(begin).write_bytes(0, from.min(map.len) - begin) };
        for removed in self.all.drain(kept..) {
            self.resident[usize::from(removed.class)] -= removed.dirty;
            self.resident_total -= removed.dirty;
        }
        self.free.iter_mut().for_each(|free| free.retain(|slot| (*slot as usize) < kept));
        self.end = begin;
    }
}
