//! The allocator: its use of memory, and free memory that is returned to the system. Large blocks are mappings of their own. The
//! buffers of closed connections and of large messages lie between live allocations, where the allocator keeps them until it is
//! asked (`malloc_trim`). That leaves the free memory at the end of a thread's heap, which only the thread itself can give back.

use crate::clock::now_ns;
use crate::timer::DeadlineCallback;
use crate::upkeep;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Delay after something was freed, and minimum interval between two trims.
const DELAY_NS: u64 = 3_000_000_000;

/// Blocks of this size and more are mapped: freed, they go back to the system, and growing one moves pages instead of
/// bytes. By default glibc raises its threshold to the largest block that was ever freed (up to 32 MiB), after which freed
/// expansions and JSON bodies stay in the process beyond the memory budget.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 4 << 20;

/// Sets the allocator's limits. Called before threads are started.
pub fn configure() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers; sets numbers of the allocator under its lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * MMAP_THRESHOLD);
    }
}

/// Bytes of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapUsage {
    /// Allocated, without large blocks, which are mappings of their own.
    pub in_use: u64,
    /// Freed and kept by the allocator; what was trimmed of it takes no physical memory.
    pub free: u64,
    /// Large blocks.
    pub mapped: u64,
}

/// What the allocator uses. Takes the locks of its arenas one after another and counts their free blocks, which may take
/// milliseconds.
pub fn usage() -> Option<HeapUsage> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes no pointers and may be called on any thread at any time.
        let info = unsafe { libc::mallinfo2() };
        let [in_use, free, mapped] =
            [info.uordblks, info.fordblks, info.hblkhd].map(|bytes| bytes as u64);
        Some(HeapUsage { in_use, free, mapped })
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Trims of the allocator's free memory.
#[derive(Default)]
pub struct Heap {
    /// A trim is scheduled.
    scheduled: AtomicBool,
    /// Number of trims.
    trims: AtomicU64,
    /// Threads that have trimmed their own heap since the last one.
    trimmed_threads: AtomicUsize,
    /// Called after a trim.
    observer: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

thread_local! {
    /// `Heap::trims` when this thread last trimmed its own heap.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Schedules a trim unless one is scheduled. Called after something was freed: a connection, or the blocks of large tensors.
pub fn trim_soon() {
    let Some(upkeep) = upkeep::get() else { return };
    let (heap, timer) = (&upkeep.heap, upkeep.timer);
    if !heap.scheduled.load(Ordering::Relaxed) && !heap.scheduled.swap(true, Ordering::Relaxed) {
        timer.schedule(now_ns().saturating_add(DELAY_NS), Arc::downgrade(heap) as _);
    }
}

impl DeadlineCallback for Heap {
    fn on_deadline(&self) {
        // Reset first, so that what is freed during the trim schedules another one.
        self.scheduled.store(false, Ordering::Relaxed);
        #[cfg(target_env = "gnu")]
        // SAFETY: takes no pointers and may be called on any thread at any time.
        let _ = unsafe { libc::malloc_trim(0) };
        self.trimmed_threads.store(0, Ordering::Relaxed);
        self.trims.fetch_add(1, Ordering::Release);
        if let Some(observer) = self.observer.get() {
            observer();
        }
    }
}

impl Heap {
    /// Calls `observer` after each trim. It has the network threads call [`Heap::trim_own`].
    pub fn on_trim(&self, observer: impl Fn() + Send + Sync + 'static) {
        let _ = self.observer.set(Box::new(observer));
    }

    /// Threads that have called [`Heap::trim_own`] since the last trim.
    pub fn trimmed_threads(&self) -> usize {
        self.trimmed_threads.load(Ordering::Relaxed)
    }

    /// Gives back the free end of this thread's heap, once after each trim. Called by a network thread before it sleeps.
    pub fn trim_own(&self) {
        let trims = self.trims.load(Ordering::Acquire);
        if SEEN.replace(trims) != trims {
            #[cfg(target_env = "gnu")]
            release_end();
            self.trimmed_threads.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The free end of a heap is at most `M_TRIM_THRESHOLD`, twice [`MMAP_THRESHOLD`]: blocks just below the latter take it up, their pages are
/// given back, and then the blocks.
#[cfg(target_env = "gnu")]
fn release_end() {
    const PAGE: usize = 4096;
    const LEN: usize = MMAP_THRESHOLD as usize * 3 / 4;
    let blocks: [*mut libc::c_void; 3] = std::array::from_fn(|_| {
        // SAFETY: takes no pointer.
        let block = unsafe { libc::malloc(LEN) };
        if !block.is_null() {
            let start = block.addr().next_multiple_of(PAGE);
            let end = (block.addr() + LEN) / PAGE * PAGE;
            // SAFETY: whole pages of a block that was just allocated, whose contents are undefined; the allocator keeps its own
            // data before the block, and after it is freed writes what it needs.
            unsafe {
                libc::madvise(block.with_addr(start), end - start, libc::MADV_DONTNEED);
            }
        }
        block
    });
    for block in blocks {
        // SAFETY: allocated above, or null.
        unsafe { libc::free(block) };
    }
}

#[cfg(all(test, target_env = "gnu"))]
#[path = "heap_tests.rs"]
mod tests;
