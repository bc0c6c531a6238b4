//! The blocks of an arena: carved one behind the other, in sizes that are powers of two, and used again.
//!
//! A block is free, somebody's, or lent: dropped here while the other process may still read it. When there is no room
//! for another block, a larger free one does, and free blocks at the end are given up, so that what was once
//! carved for some sizes can serve others.

use super::{Map, SLOTS, TABLE};
use rustix::param::page_size;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Smallest block; also the alignment of every block, more than a cache line so that neighbours do not share one.
const LEAST: usize = 256;
/// Bytes of free blocks that stay in memory; what goes beyond is given back to the system at once.
pub const KEEP: usize = 64 << 20;
/// Powers of two from [`LEAST`] on.
const CLASSES: usize = 40;
/// Lent blocks looked at whenever one is taken: they may have come back.
const SWEEP: usize = 8;
/// A size that nobody asked for while so many blocks were taken keeps no memory that another one could keep.
const COLD: u64 = 64;

/// See the module text.
pub struct Blocks {
    /// Ascending by offset; the index is the slot.
    all: Vec<Carved>,
    /// Free slots by class.
    free: Vec<Vec<u32>>,
    /// Slots of lent blocks, those first that were looked at longest ago.
    lent: VecDeque<u32>,
    /// Where the next new block begins. What lies behind is zero.
    end: usize,
    /// Bytes of free blocks that are in memory, by class and together.
    warm: [usize; CLASSES],
    kept: usize,
    /// Blocks taken so far, and how many there were when each class was last asked for.
    taken: u64,
    asked: [u64; CLASSES],
}

struct Carved {
    offset: usize,
    class: u8,
    /// Bytes from the start that may not be zero.
    dirty: usize,
}

/// The class whose blocks have room for `len` bytes.
pub fn class_of(len: usize) -> Option<usize> {
    let class =
        len.max(LEAST).checked_next_power_of_two()?.trailing_zeros() - LEAST.trailing_zeros();
    Some(class as usize).filter(|c| *c < CLASSES)
}

impl Blocks {
    pub fn new() -> Self {
        Self {
            all: Vec::new(),
            free: vec![Vec::new(); CLASSES],
            lent: VecDeque::new(),
            end: TABLE,
            warm: [0; CLASSES],
            kept: 0,
            taken: 0,
            asked: [0; CLASSES],
        }
    }

    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// The block in which `offset` lies.
    pub fn at(&self, offset: usize) -> Option<u32> {
        let behind = self.all.partition_point(|block| block.offset <= offset);
        behind.checked_sub(1).map(|slot| slot as u32)
    }

    /// Where a block lies and how much of it may not be zero, before `len` bytes of it are used.
    pub fn used(&mut self, slot: u32, len: usize) -> (usize, usize) {
        let block = &mut self.all[slot as usize];
        let before = block.dirty;
        block.dirty = before.max(len);
        (block.offset, before)
    }

    /// A block of this class or a larger one; `None` when there is no room.
    pub fn take(&mut self, class: usize, map: &Map) -> Option<u32> {
        self.taken += 1;
        self.asked[class] = self.taken;
        self.sweep(SWEEP, map);
        let found = self.pop(class).or_else(|| self.carve(class, map));
        if found.is_some() {
            return found;
        }
        // Rare, and better than to refuse a request.
        self.sweep(self.lent.len(), map);
        let larger = (class..CLASSES).find_map(|class| self.pop(class));
        larger.or_else(|| {
            self.shorten(map);
            self.carve(class, map)
        })
    }

    /// The block is nobody's any more, but perhaps still read.
    pub fn give_back(&mut self, slot: u32, map: &Map) {
        if map.word(slot).load(Ordering::Acquire) == 0 {
            self.free(slot, map);
        } else {
            self.lent.push_back(slot);
        }
    }

    /// Looks at `count` of the lent blocks, and frees those that nobody reads any more.
    fn sweep(&mut self, count: usize, map: &Map) {
        for _ in 0..count.min(self.lent.len()) {
            if let Some(slot) = self.lent.pop_front() {
                self.give_back(slot, map);
            }
        }
    }

    fn pop(&mut self, class: usize) -> Option<u32> {
        let slot = self.free[class].pop()?;
        let dirty = self.all[slot as usize].dirty;
        self.warm[class] -= dirty;
        self.kept -= dirty;
        Some(slot)
    }

    fn carve(&mut self, class: usize, map: &Map) -> Option<u32> {
        let size = LEAST << class;
        // Blocks of a page or more begin on a page, so that their pages can be given back.
        let offset = self.end.next_multiple_of(size.min(page_size()));
        if self.all.len() >= SLOTS || offset.checked_add(size)? > map.len {
            return None;
        }
        self.all.push(Carved { offset, class: class as u8, dirty: 0 });
        self.end = offset + size;
        Some(self.count() - 1)
    }

    fn free(&mut self, slot: u32, map: &Map) {
        let block = &self.all[slot as usize];
        let (class, dirty) = (usize::from(block.class), block.dirty);
        if self.kept + dirty > KEEP {
            self.cool(map);
        }
        if self.kept + dirty > KEEP {
            self.forget(slot, map);
        }
        let dirty = self.all[slot as usize].dirty;
        self.warm[class] += dirty;
        self.kept += dirty;
        self.free[class].push(slot);
    }

    /// Gives the pages of a block back that nobody uses. Smaller ones share their page.
    fn forget(&mut self, slot: u32, map: &Map) {
        let block = &mut self.all[slot as usize];
        let size = LEAST << block.class;
        // SAFETY: whole pages of the block, see `carve`, which is nobody's.
        if size >= page_size() && unsafe { map.forget(block.offset, size) } {
            block.dirty = 0;
        }
    }

    /// Gives the memory of classes back that nobody has asked for lately.
    fn cool(&mut self, map: &Map) {
        for class in 0..CLASSES {
            if self.warm[class] == 0 || self.taken - self.asked[class] < COLD {
                continue;
            }
            let slots = std::mem::take(&mut self.free[class]);
            for slot in &slots {
                let before = self.all[*slot as usize].dirty;
                if before > 0 {
                    self.forget(*slot, map);
                }
                let gone = before - self.all[*slot as usize].dirty;
                self.warm[class] -= gone;
                self.kept -= gone;
            }
            self.free[class] = slots;
        }
    }

    /// Gives the free blocks at the end up, so that others can be carved there.
    fn shorten(&mut self, map: &Map) {
        let mut is_free = vec![false; self.all.len()];
        self.free.iter().flatten().for_each(|slot| is_free[*slot as usize] = true);
        let stay = is_free.iter().rposition(|free| !free).map_or(0, |last| last + 1);
        let Some(first) = self.all.get(stay) else { return };
        let (page, begin) = (page_size(), first.offset);
        let (from, to) =
            (begin.next_multiple_of(page), self.end.next_multiple_of(page).min(map.len));
        // SAFETY: whole pages behind the last block that is not free, but for the rest of its own page.
        if from < to && !unsafe { map.forget(from, to - from) } {
            return;
        }
        // SAFETY: the rest of that page, which belongs to the free blocks; inside the mapping.
        unsafe { map.base.add(begin).write_bytes(0, from.min(map.len) - begin) };
        for gone in self.all.drain(stay..) {
            self.warm[usize::from(gone.class)] -= gone.dirty;
            self.kept -= gone.dirty;
        }
        self.free.iter_mut().for_each(|free| free.retain(|slot| (*slot as usize) < stay));
        self.end = begin;
    }
}
