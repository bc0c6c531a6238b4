//! How busy a model version was between two readings of its counters.

use std::time::Duration;
use trtserver_base::stats::VersionCounters;

/// What is read of a version's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VersionReading {
    pub ended: u64,
    pub failed: u64,
    /// Time that instances spent on executions.
    pub executing_ns: u64,
}

/// What happened to a version between two readings, and what a new request meets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VersionLoad {
    pub requests_per_second: f64,
    pub errors_per_second: f64,
    /// See [`crate::LoadReport::application_utilization`].
    pub utilization: f64,
}

impl VersionReading {
    pub fn read(counters: &VersionCounters) -> Self {
        let total = counters.total();
        Self {
            ended: total.success.count + total.failed.count,
            failed: total.failed.count,
            executing_ns: counters.execution_ns(),
        }
    }

    /// `earlier`: the reading before this one, `elapsed` ago. `wait`: what a request that is queued
    /// now will wait, and `target`: the wait that is still good.
    pub fn load_since(
        &self,
        earlier: &Self,
        elapsed: Duration,
        instances: usize,
        (wait, target): (Duration, Duration),
    ) -> VersionLoad {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let executing_ns = per_second(self.executing_ns, earlier.executing_ns);
        let busy = (executing_ns / 1e9 / instances.max(1) as f64).min(1.0);
        VersionLoad {
            requests_per_second: per_second(self.ended, earlier.ended),
            errors_per_second: per_second(self.failed, earlier.failed),
            utilization: busy + wait.as_secs_f64() / target.as_secs_f64().max(1e-9),
        }
    }
}

#[cfg(test)]
#[path = "version_load_tests.rs"]
mod tests;
