//! Returns free heap memory to the system (`malloc_trim`) after connections have closed. Their buffers lie between live
//! allocations, and the allocator itself only returns the end of its heap.

use crate::clock::now_ns;
use crate::timer::{self, DeadlineCallback};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

/// Delay after a connection has closed, and minimum interval between two trims.
const DELAY_NS: u64 = 3_000_000_000;

static HEAP: LazyLock<Arc<Heap>> = LazyLock::new(Arc::default);

#[derive(Default)]
struct Heap {
    /// A trim is scheduled.
    scheduled: AtomicBool,
}

/// Schedules a trim unless one is scheduled. Called after something was freed, e.g. a connection.
pub fn trim_soon() {
    if !HEAP.scheduled.load(Ordering::Relaxed) && !HEAP.scheduled.swap(true, Ordering::Relaxed) {
        let heap: Weak<Heap> = Arc::downgrade(&HEAP);
        timer::schedule(now_ns().saturating_add(DELAY_NS), heap);
    }
}

impl DeadlineCallback for Heap {
    fn on_deadline(&self) {
        // Reset first, so that what is freed during the trim schedules another one.
        self.scheduled.store(false, Ordering::Relaxed);
        #[cfg(target_env = "gnu")]
        // SAFETY: takes no pointers and may be called on any thread at any time.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
