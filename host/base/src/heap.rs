//! The allocator: its use of memory, and free memory that is returned to the system. Large blocks
//! are mappings of their own. The buffers of closed connections and of large messages lie between
//! live allocations, where the allocator keeps them until it is asked (`malloc_trim`). That leaves
//! the free memory at the end of a thread's heap: at most the trim threshold below.

#[cfg(target_env = "gnu")]
use crate::budget::address_space_limit;
use crate::clock::now_ns;
use crate::timer::DeadlineCallback;
use crate::upkeep;
use std::sync::Arc;
#[cfg(target_env = "gnu")]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Delay after something was freed, and minimum interval between two trims.
const DELAY_NS: u64 = 3_000_000_000;

/// Blocks of this size and more are mapped: freed, they go back to the system, and growing one
/// moves pages instead of bytes. By default glibc raises its threshold to the largest block that
/// was ever freed (up to 32 MiB), after which freed expansions and JSON bodies stay in the process
/// beyond the memory budget.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 4 << 20;

/// Part of a limited address space that heaps of threads may reserve.
#[cfg(target_env = "gnu")]
const HEAPS_PART: u64 = 8;
/// Address space that the heap of a thread reserves.
#[cfg(target_env = "gnu")]
const HEAP_SPACE: u64 = 64 << 20;

/// Sets the allocator's limits. Called before threads are started.
pub fn configure_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers; sets numbers of the allocator under its lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * MMAP_THRESHOLD);
        if let Some(space) = address_space_limit() {
            // Threads beyond these share heaps; otherwise the heaps would take the space of stacks.
            let heaps = (space / HEAPS_PART / HEAP_SPACE).max(1);
            libc::mallopt(libc::M_ARENA_MAX, heaps.try_into().unwrap_or(libc::c_int::MAX));
        }
    }
}

/// `mallinfo2`, looked up since programs that need it do not start with an older glibc. Its
/// predecessor counts to 4 GiB and starts anew.
#[cfg(target_env = "gnu")]
static READ_USAGE: LazyLock<Option<unsafe extern "C" fn() -> libc::mallinfo2>> =
    LazyLock::new(|| {
        // SAFETY: the name ends with a zero byte, and the search needs no handle.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        // SAFETY: under this name glibc has a function without arguments that returns this struct;
        // an `Option` of a function and a pointer have the same size, and null is `None`.
        unsafe { std::mem::transmute(found) }
    });

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

/// What the allocator uses; `None` where it does not say, as glibc before 2.33. Takes the locks of
/// its arenas one after another and counts their free blocks, which may take milliseconds.
pub fn read_heap_usage() -> Option<HeapUsage> {
    #[cfg(target_env = "gnu")]
    {
        let read = (*READ_USAGE)?;
        // SAFETY: takes no pointers and may be called on any thread at any time.
        let info = unsafe { read() };
        let [in_use, free, mapped] =
            [info.uordblks, info.fordblks, info.hblkhd].map(|bytes| bytes as u64);
        Some(HeapUsage { in_use, free, mapped })
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Trims of the allocator's free memory.
#[derive(Default)]
pub struct HeapTrimmer {
    /// A trim is scheduled.
    scheduled: AtomicBool,
}

/// Schedules a trim unless one is scheduled. Called after something was freed: a connection, or the
/// blocks of large tensors.
pub fn trim_soon() {
    let Some(upkeep) = upkeep::get_upkeep() else { return };
    let (heap, timer) = (&upkeep.heap, upkeep.timer);
    if !heap.scheduled.load(Ordering::Relaxed) && !heap.scheduled.swap(true, Ordering::Relaxed) {
        timer.schedule(now_ns().saturating_add(DELAY_NS), Arc::downgrade(heap) as _);
    }
}

impl DeadlineCallback for HeapTrimmer {
    fn on_deadline(&self) {
        // Reset first, so that what is freed during the trim schedules another one.
        self.scheduled.store(false, Ordering::Relaxed);
        #[cfg(target_env = "gnu")]
        // SAFETY: takes no pointers and may be called on any thread at any time.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
