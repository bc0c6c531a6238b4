//! CPU time of the calling thread, and how much of it the schedulers may use.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What scheduling may add to the CPU time of a request, in microseconds.
pub const MAX_ADDED_US: f64 = 5.0;

/// So far; what else runs on the machine does not count.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
