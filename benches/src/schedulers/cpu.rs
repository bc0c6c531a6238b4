//! CPU time of the calling thread and of the process, and the limit for schedulers.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What scheduling may add to the CPU time of a request, in microseconds.
pub const MAX_ADDED_US: f64 = 5.0;

/// CPU time of this thread so far, independent of other load.
pub fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

/// The same of all threads of this process.
pub fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
