//! How long an instance takes for a request, from what was counted since the last time it was asked
//! for. Predicts the time that requests wait.

use super::counters::VersionCounters;
use parking_lot::Mutex;

/// The time is that of at least this period, if requests were executed in it.
const PERIOD_NS: u64 = 1_000_000_000;

#[derive(Default)]
pub struct ServiceTime(Mutex<LastReading>);

#[derive(Default)]
struct LastReading {
    at_ns: u64,
    /// Time of all executions until then, and their requests.
    busy_ns: u64,
    requests: u64,
    /// Nanoseconds of an instance for one request.
    request_ns: f64,
}

impl ServiceTime {
    /// Nanoseconds of an instance for one request: less than the execution takes if batches have
    /// several. 0 before the first one.
    pub fn estimate_ns(&self, now_ns: u64, counters: &VersionCounters) -> f64 {
        let busy_ns = counters.execution_ns();
        let requests = counters.total().success.count.saturating_sub(counters.cache_hit.count);
        let mut last = self.0.lock();
        let due = now_ns.saturating_sub(last.at_ns) >= PERIOD_NS;
        if due && requests > last.requests {
            let busy = busy_ns.saturating_sub(last.busy_ns);
            let request_ns = busy as f64 / (requests - last.requests) as f64;
            *last = LastReading { at_ns: now_ns, busy_ns, requests, request_ns };
        }
        last.request_ns
    }
}

#[cfg(test)]
#[path = "service_time_tests.rs"]
mod tests;
