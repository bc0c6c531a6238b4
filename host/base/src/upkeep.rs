//! Giving memory back to the system: the timer that schedules it, the thread that unmaps, the trims of the allocator.

use crate::heap::Heap;
use crate::reclaim::ReclaimQueue;
use crate::timer::{DeadlineCallback, Timer};
use std::sync::{Arc, OnceLock, Weak};

/// Process-wide: memory reaches it where it is dropped. Tools and child processes of models have none.
static UPKEEP: OnceLock<Upkeep> = OnceLock::new();

/// What gives memory back to the system.
pub struct Upkeep {
    pub timer: &'static Timer,
    pub reclaim: &'static ReclaimQueue,
    pub heap: Arc<Heap>,
}

/// Starts the thread that unmaps; trims are scheduled with `timer`. A process has one upkeep: the first.
///
/// # Errors
/// The system starts no threads.
pub fn start(timer: &'static Timer) -> std::io::Result<&'static Upkeep> {
    let reclaim = ReclaimQueue::start()?;
    Ok(UPKEEP.get_or_init(|| Upkeep { timer, reclaim, heap: Arc::default() }))
}

/// `None` before [`start`].
pub fn get() -> Option<&'static Upkeep> {
    UPKEEP.get()
}

/// As [`Timer::schedule`]; never without [`start`].
pub fn schedule(at_ns: u64, callback: Weak<dyn DeadlineCallback>) {
    if let Some(upkeep) = get() {
        upkeep.timer.schedule(at_ns, callback);
    }
}
