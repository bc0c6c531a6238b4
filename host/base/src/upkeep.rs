//! Giving memory back to the system: the timer that schedules it, the thread that unmaps, the trims
//! of the allocator.

use crate::heap::HeapTrimmer;
use crate::reclaim::ReclaimQueue;
use crate::timer::{DeadlineCallback, DeadlineTimer};
use std::sync::{Arc, OnceLock, Weak};

/// Process-wide: memory reaches it where it is dropped. Tools and child processes of models have
/// none.
static UPKEEP: OnceLock<Upkeep> = OnceLock::new();

/// What gives memory back to the system.
pub struct Upkeep {
    pub timer: &'static DeadlineTimer,
    pub reclaim: &'static ReclaimQueue,
    pub heap: Arc<HeapTrimmer>,
}

/// Starts the thread that unmaps; trims are scheduled with `timer`. A process has one upkeep: the
/// first.
///
/// # Errors
/// The system starts no threads.
pub fn start_upkeep(timer: &'static DeadlineTimer) -> std::io::Result<&'static Upkeep> {
    let reclaim = ReclaimQueue::start()?;
    Ok(UPKEEP.get_or_init(|| Upkeep { timer, reclaim, heap: Arc::default() }))
}

/// `None` before [`start_upkeep`].
pub fn get_upkeep() -> Option<&'static Upkeep> {
    UPKEEP.get()
}

/// As [`DeadlineTimer::schedule`]; never without [`start_upkeep`].
pub fn schedule_callback(at_ns: u64, callback: Weak<dyn DeadlineCallback>) {
    if let Some(upkeep) = get_upkeep() {
        upkeep.timer.schedule(at_ns, callback);
    }
}
