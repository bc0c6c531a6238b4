//! Which requests are refused on arrival because they would wait too long. A pure decision.
//!
//! In a queue that is as long as requests can wait, all requests end late. Those that are refused
//! cost nothing, and those that are queued are answered in time.

use std::time::Duration;
use trtserver_base::stats::ServiceEstimate;

/// What a request meets in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueArrival {
    /// Waiting requests that are executed before it.
    pub ahead: usize,
    /// Requests of the largest batch.
    pub max_requests: u32,
    /// The timeout of its queue, which it may have shortened; 0 = none.
    pub queue_timeout_us: u64,
}

/// The limits of a request's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitLimits {
    /// The wait that is still good for models whose queue has no timeout.
    pub target: Duration,
    /// The timeout that the request asks for; 0 = none.
    pub timeout_us: u64,
    /// How long the client still waits for its response; `None` = for ever.
    pub answer_within: Option<Duration>,
}

/// The limit that a request would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    Target,
    /// The queue's, or its own.
    Timeout,
    /// It would be executed, but not in time.
    Deadline,
}

/// Why a request is refused: it would wait for `wait`, which exceeds `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateArrival {
    pub wait: Duration,
    pub limit: Duration,
    pub kind: WaitLimit,
}

/// The refusal of a request that would wait too long. One that can be executed at once is never
/// refused: otherwise a model that was slow once would execute nothing any more.
pub fn find_late(
    estimate: &ServiceEstimate,
    arrival: &QueueArrival,
    (instances, is_busy): (usize, bool),
    limits: &WaitLimits,
) -> Option<LateArrival> {
    let QueueArrival { ahead, max_requests, queue_timeout_us } = *arrival;
    let wait = estimate.busy_wait(ahead, instances, max_requests, is_busy);
    if wait.is_zero() {
        return None;
    }
    let late = |limit, kind| LateArrival { wait, limit, kind };
    let requested = if queue_timeout_us == 0 { limits.timeout_us } else { queue_timeout_us };
    let mut found = (requested != 0)
        .then(|| late(Duration::from_micros(requested), WaitLimit::Timeout))
        .filter(|late| wait > late.limit);
    if found.is_none() && queue_timeout_us == 0 && wait > limits.target {
        found = Some(late(limits.target, WaitLimit::Target));
    }
    if found.is_none()
        && let Some(left) = limits.answer_within
        && wait + Duration::from_nanos(estimate.execution_ns as u64) > left
    {
        found = Some(late(left, WaitLimit::Deadline));
    }
    found
}

#[cfg(test)]
#[path = "late_refusal_tests.rs"]
mod tests;
