//! Memory pool for large tensors. Blocks are kept for a short time after use and reused: page
//! faults of fresh memory cost several times the copy into it.
//!
//! Size classes are spaced four to a doubling, so at most a fifth of a block is unused. Free blocks
//! are kept up to a bound, evicted longest-unused first, and unmapped after [`MAX_IDLE_NS`]: an
//! idle server keeps no blocks and wakes no thread. An allocation that fails is retried after all
//! free blocks were unmapped.

use super::buffer::BUFFERS;
use super::pages::MappedPages;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_base::budget;
use trtserver_base::budget::MemoryReservation;
use trtserver_base::clock::now_ns;
use trtserver_base::heap;
use trtserver_base::reclaim;
use trtserver_base::timer::DeadlineCallback;
use trtserver_base::upkeep;

/// Smaller blocks come from the allocator.
pub const MIN_SIZE: usize = 64 << 10;
/// Larger blocks are unmapped after one use.
const MAX_SIZE: usize = 128 << 20;
/// Size classes from [`MIN_SIZE`] to [`MAX_SIZE`].
const CLASSES: usize = 4 * (MAX_SIZE / MIN_SIZE).ilog2() as usize + 1;
/// Upper limit of the bound on free bytes, see [`bound`].
const MAX_BOUND: usize = 256 << 20;
/// A free block that is not taken for this long is unmapped.
const MAX_IDLE_NS: u64 = 2_000_000_000;

/// Resizes a block for `len` bytes, without a copy. False if the kernel refuses.
pub fn resize_pages(pages: &mut MappedPages, len: usize) -> bool {
    let size = find_size_class(len).map_or(len, size_of_class);
    size == pages.size() || pages.resize(size)
}

/// The size class of blocks for `len` bytes; `None` above [`MAX_SIZE`].
fn find_size_class(len: usize) -> Option<usize> {
    let len = len.max(MIN_SIZE);
    if len > MAX_SIZE {
        return None;
    }
    let doublings = (len / MIN_SIZE).ilog2() as usize;
    let step = (MIN_SIZE << doublings) / 4;
    Some(4 * doublings + (len - (MIN_SIZE << doublings)).div_ceil(step))
}

/// Bytes of a block of this class.
fn size_of_class(class: usize) -> usize {
    (MIN_SIZE / 4 * (4 + class % 4)) << (class / 4)
}

/// Free blocks of large tensors, reused by size class up to a bound in bytes.
pub struct BufferPool {
    free: Mutex<FreeBlocks>,
    bound: usize,
}

struct FreeBlocks {
    /// By class. The block used last is at the back and taken first, because it may still be in the
    /// CPU caches.
    classes: Vec<VecDeque<FreeBlock>>,
    bytes: usize,
    /// A call of [`BufferPool::trim`] is scheduled.
    trim_scheduled: bool,
}

struct FreeBlock {
    pages: MappedPages,
    since_ns: u64,
}

impl BufferPool {
    /// Keeps at most `bound` free bytes, and at most half of that in one class.
    pub fn new(bound: usize) -> Self {
        let classes = (0..CLASSES).map(|_| VecDeque::new()).collect();
        Self { free: Mutex::new(FreeBlocks { classes, bytes: 0, trim_scheduled: false }), bound }
    }

    /// A block of at least `len` bytes, with its last user's data; `None` if out of memory.
    pub fn take(&self, len: usize) -> Option<MappedPages> {
        let class = find_size_class(len);
        if let Some(pages) = class.and_then(|class| self.lock().pop(class)) {
            return Some(pages);
        }
        let size = class.map_or(len, size_of_class);
        MappedPages::map(size).or_else(|| {
            drop(self.trim(u64::MAX));
            MappedPages::map(size)
        })
    }

    /// Returns a block, and what paid for it, to the pool. If no call of [`BufferPool::trim`] is
    /// scheduled, returns the time to call it.
    pub fn put(&self, pages: MappedPages, paid: MemoryReservation, now_ns: u64) -> Option<u64> {
        let size = pages.size();
        let Some(class) = find_size_class(size).filter(|_| size <= self.bound / 2) else {
            reclaim::reclaim_later((pages, paid));
            return None;
        };
        let mut evicted = Vec::new();
        let mut free = self.lock();
        while (free.classes[class].len() + 1) * size > self.bound / 2 {
            evicted.extend(free.evict(class));
        }
        while free.bytes + size > self.bound {
            let oldest = (0..CLASSES)
                .filter_map(|class| Some((free.classes[class].front()?.since_ns, class)))
                .min();
            let Some((_, class)) = oldest else { break };
            evicted.extend(free.evict(class));
        }
        free.bytes += size;
        free.classes[class].push_back(FreeBlock { pages, since_ns: now_ns });
        let scheduled = std::mem::replace(&mut free.trim_scheduled, true);
        drop(free);
        if !evicted.is_empty() {
            reclaim::reclaim_later((evicted, paid));
        }
        (!scheduled).then_some(now_ns.saturating_add(MAX_IDLE_NS))
    }

    /// Takes out the blocks that were not taken for [`MAX_IDLE_NS`], and returns the time of the
    /// next call if any are left. Dropping the blocks unmaps them.
    pub fn trim(&self, now_ns: u64) -> (Vec<MappedPages>, Option<u64>) {
        let mut evicted = Vec::new();
        let mut free = self.lock();
        let mut next = None;
        for class in 0..CLASSES {
            while let Some(first) = free.classes[class].front() {
                let due = first.since_ns.saturating_add(MAX_IDLE_NS);
                if due > now_ns {
                    next = Some(next.map_or(due, |next: u64| next.min(due)));
                    break;
                }
                evicted.extend(free.evict(class));
            }
        }
        free.trim_scheduled = next.is_some();
        (evicted, next)
    }

    fn lock(&self) -> MutexGuard<'_, FreeBlocks> {
        self.free.lock()
    }
}

impl FreeBlocks {
    fn pop(&mut self, class: usize) -> Option<MappedPages> {
        let block = self.classes[class].pop_back()?;
        self.bytes -= block.pages.size();
        Some(block.pages)
    }

    /// Takes out the block of a class that was unused for longest.
    fn evict(&mut self, class: usize) -> Option<MappedPages> {
        let block = self.classes[class].pop_front()?;
        self.bytes -= block.pages.size();
        Some(block.pages)
    }
}

/// Bytes of the pool of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes of all blocks, written or not.
    pub mapped: u64,
    /// Bytes of blocks that are kept for reuse.
    pub free: u64,
    /// At most so many free bytes are kept.
    pub bound: u64,
}

/// The use of the pool of this process.
pub fn read_pool_usage() -> PoolUsage {
    let free = BUFFERS.pool.lock().bytes;
    // A block that is mapped or taken in between must not make the free bytes exceed the mapped
    // ones.
    let mapped = BUFFERS.mapped.load(Ordering::Relaxed).max(free);
    let [mapped, free, bound] = [mapped, free, BUFFERS.pool.bound].map(|bytes| bytes as u64);
    PoolUsage { mapped, free, bound }
}

/// As [`BufferPool::take`], from the pool of this process.
pub fn take_pages(len: usize) -> Option<MappedPages> {
    BUFFERS.pool.take(len)
}

/// As [`BufferPool::put`], into the pool of this process.
pub fn return_pages(pages: MappedPages, paid: MemoryReservation) {
    if let Some(at_ns) = BUFFERS.pool.put(pages, paid, now_ns()) {
        schedule_trim(at_ns);
    }
}

impl DeadlineCallback for BufferPool {
    fn on_deadline(&self) {
        let (idle, next) = self.trim(now_ns());
        if !idle.is_empty() {
            // Large tensors have left: what the allocator keeps of the messages around them goes
            // back as well.
            heap::trim_soon();
        }
        reclaim::reclaim_later(idle);
        if let Some(at_ns) = next {
            schedule_trim(at_ns);
        }
    }
}

fn schedule_trim(at_ns: u64) {
    upkeep::schedule_callback(at_ns, Arc::downgrade(&BUFFERS.pool) as _);
}

/// An eighth of the memory that this process may use, or of the memory budget, which free blocks
/// are not part of; at most [`MAX_BOUND`].
pub fn pool_bound() -> usize {
    let available = usize::try_from(budget::available_memory()).unwrap_or(usize::MAX);
    (available.min(budget::request_memory().limit()) / 8).min(MAX_BOUND)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
