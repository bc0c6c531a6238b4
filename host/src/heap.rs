//! Free memory of the allocator goes back to the system when connections have ended: their buffers lie between what stays,
//! and the allocator by itself gives back no more than the end of its heap.

use crate::clock::now_ns;
use crate::timer::{self, DeadlineCallback};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

/// How long after a connection has ended; and no more often than that, however many end.
const AFTER_NS: u64 = 3_000_000_000;

static HEAP: LazyLock<Arc<Heap>> = LazyLock::new(Arc::default);

#[derive(Default)]
struct Heap {
    /// The alarm is set.
    awaited: AtomicBool,
}

/// Something has ended that leaves free memory behind. Once for each is enough; it costs nothing but the first time.
pub fn trim_soon() {
    if !HEAP.awaited.load(Ordering::Relaxed) && !HEAP.awaited.swap(true, Ordering::Relaxed) {
        let heap: Weak<Heap> = Arc::downgrade(&HEAP);
        timer::schedule(now_ns().saturating_add(AFTER_NS), heap);
    }
}

impl DeadlineCallback for Heap {
    fn on_deadline(&self) {
        // Before the work: what ends during it is seen by the next one.
        self.awaited.store(false, Ordering::Relaxed);
        #[cfg(target_env = "gnu")]
        // SAFETY: without pointers, and allowed on any thread at any time.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
