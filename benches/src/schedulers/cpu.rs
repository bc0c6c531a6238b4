//! CPU time of the calling thread, and the limit for schedulers.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What scheduling may add to the CPU time of a request, in microseconds.
pub const MAX_ADDED_US: f64 = 5.0;

/// CPU time of this thread so far, independent of other load.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
