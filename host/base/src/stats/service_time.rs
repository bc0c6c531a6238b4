//! How long an instance takes for a request, from what was counted since the last time it was asked
//! for. Predicts the time that requests wait.
//!
//! The estimate is read by requests, so it lies in atomics; it is renewed about once a second by one
//! of the readers.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The estimate is that of at least this period, if requests were executed in it.
const PERIOD_NS: u64 = 1_000_000_000;
/// And of at least as many executions, one after the other: of fewer it would depend on where the
/// period begins.
const MIN_EXECUTIONS: f64 = 3.0;
/// How soon it is looked again whether anything was executed.
const RETRY_NS: u64 = 50_000_000;
/// The busy part of the instances' time from which on batches are as large as they get.
const SATURATED: f64 = 0.8;

/// What was executed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExecutedWork {
    /// Time of all executions.
    pub busy_ns: u64,
    pub executions: u64,
    /// Requests that had an execution of their own or shared one.
    pub requests: u64,
}

/// What the executions of the last period have taken. All 0 before the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServiceEstimate {
    /// One execution, from its begin to its end.
    pub execution_ns: f64,
    /// An instance's time for one execution: less, where an instance has several at a time.
    pub turn_ns: f64,
    /// Requests of an execution.
    pub requests: f64,
    /// The instances had hardly any idle time: executions do not get larger.
    pub saturated: bool,
}

impl ServiceEstimate {
    /// What a request waits behind `waiting` others, in executions like those of the period.
    pub fn wait(&self, waiting: usize, instances: usize) -> Duration {
        self.turns(waiting as f64 / self.requests.max(1.0), instances)
    }

    /// The same at the rate that the instances have when they are busy: batches of up to
    /// `max_requests`, unless those of the period could not have been larger. `is_busy`: all
    /// instances execute, so that an execution has to end first.
    pub fn busy_wait(
        &self,
        waiting: usize,
        instances: usize,
        max_requests: u32,
        is_busy: bool,
    ) -> Duration {
        let largest = if self.saturated { 1.0 } else { f64::from(max_requests) };
        let batches = waiting as f64 / self.requests.max(largest).max(1.0);
        self.turns(batches + f64::from(u8::from(is_busy)), instances)
    }

    fn turns(&self, turns: f64, instances: usize) -> Duration {
        Duration::from_nanos((self.turn_ns * turns / instances.max(1) as f64) as u64)
    }
}

#[derive(Default)]
pub struct ServiceTime {
    /// When the estimate may be renewed.
    due_ns: AtomicU64,
    execution_ns: AtomicF64,
    turn_ns: AtomicF64,
    requests: AtomicF64,
    saturated: AtomicBool,
    last: Mutex<Option<LastReading>>,
}

struct LastReading {
    at_ns: u64,
    work: ExecutedWork,
}

#[derive(Default)]
struct AtomicF64(AtomicU64);

impl AtomicF64 {
    fn load(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    fn store(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }
}

impl ServiceTime {
    /// The estimate; renewed if it is due and no other thread renews it. `work` is called then.
    pub fn estimate(
        &self,
        now_ns: u64,
        instances: usize,
        work: impl FnOnce() -> ExecutedWork,
    ) -> ServiceEstimate {
        if now_ns >= self.due_ns.load(Relaxed)
            && let Some(mut last) = self.last.try_lock()
        {
            self.renew(&mut last, now_ns, instances, work());
        }
        ServiceEstimate {
            execution_ns: self.execution_ns.load(),
            turn_ns: self.turn_ns.load(),
            requests: self.requests.load(),
            saturated: self.saturated.load(Relaxed),
        }
    }

    fn renew(
        &self,
        last: &mut Option<LastReading>,
        now_ns: u64,
        instances: usize,
        work: ExecutedWork,
    ) {
        let before = last.as_ref().map_or_else(ExecutedWork::default, |last| last.work);
        let executions = work.executions.saturating_sub(before.executions);
        if executions == 0 {
            // The first period begins with the first look.
            last.get_or_insert(LastReading { at_ns: now_ns, work });
            self.due_ns.store(now_ns.saturating_add(RETRY_NS), Relaxed);
            return;
        }
        let busy = work.busy_ns.saturating_sub(before.busy_ns) as f64;
        // Executions that overlap on an instance take no more of it than the whole time.
        let most = last.as_ref().map_or(f64::INFINITY, |last| {
            now_ns.saturating_sub(last.at_ns) as f64 * instances.max(1) as f64
        });
        let executions = executions as f64;
        let execution_ns = busy / executions;
        self.execution_ns.store(execution_ns);
        self.turn_ns.store(busy.min(most) / executions);
        self.requests.store(work.requests.saturating_sub(before.requests) as f64 / executions);
        self.saturated.store(busy >= SATURATED * most, Relaxed);
        *last = Some(LastReading { at_ns: now_ns, work });
        let period = PERIOD_NS.max((MIN_EXECUTIONS * execution_ns) as u64);
        self.due_ns.store(now_ns.saturating_add(period), Relaxed);
    }
}

#[cfg(test)]
#[path = "service_time_tests.rs"]
mod tests;
