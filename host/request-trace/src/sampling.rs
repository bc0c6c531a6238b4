//! One trace setting in force: which requests it samples, and the traces that it has collected for
//! the next file.

use crate::file::{Collected, TraceFile};
use crate::request_trace::RequestTrace;
use crate::settings::{OwnValues, TraceLevels, TraceTarget, TraceValues};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// A setting, with its counters.
#[derive(Debug)]
pub struct TraceSetting {
    own: OwnValues,
    values: TraceValues,
    /// Why it cannot trace.
    problem: Option<&'static str>,
    /// Requests that it was asked for, unless it samples all of them.
    seen: AtomicU64,
    /// Traces that may still be sampled; -1 = any number.
    left: AtomicI64,
    /// Traces that it has sampled for the file.
    created: AtomicU64,
    collected: Mutex<Collected>,
    file: Option<Arc<TraceFile>>,
}

/// What a trace needs of the setting that sampled it.
#[derive(Clone, Debug)]
pub struct SampledBy {
    levels: TraceLevels,
    /// The setting itself, if there is a trace file. Without one no trace refers to it: all threads
    /// would count their references in one place.
    collector: Option<Arc<TraceSetting>>,
}

impl SampledBy {
    pub fn levels(&self) -> TraceLevels {
        self.levels
    }

    /// Adds a finished trace to the trace file, if there is one.
    pub fn write(&self, trace: &RequestTrace) {
        let Some(collector) = &self.collector else { return };
        let TraceSetting { values, left, created, collected, file, .. } = &**collector;
        let Some(file) = file else { return };
        let exhausted = || left.load(Relaxed) == 0;
        let created = || created.load(Relaxed);
        collected.lock().add(file, trace, values, (&exhausted, &created));
    }
}

impl TraceSetting {
    pub fn new(own: OwnValues, values: TraceValues, target: &TraceTarget) -> Self {
        let problem = if !values.levels.any() {
            Some("tracing is disabled")
        } else if values.rate == 0 {
            Some("sample rate must be non-zero")
        } else if target.file.is_none() && !target.without_file {
            Some("trace file name is not given")
        } else {
            None
        };
        Self {
            own,
            values,
            problem,
            seen: AtomicU64::new(0),
            left: AtomicI64::new(values.count.into()),
            created: AtomicU64::new(0),
            collected: Mutex::default(),
            file: target.file.clone(),
        }
    }

    pub fn problem(&self) -> Option<&'static str> {
        self.problem
    }

    /// It may sample requests.
    pub fn is_active(&self) -> bool {
        self.problem.is_none() && self.left.load(Relaxed) != 0
    }

    /// The values that it has itself, with the traces that are left.
    pub fn own(&self) -> OwnValues {
        let count = self.own.count.map(|_| self.values().count);
        OwnValues { count, ..self.own }
    }

    /// The values in force. The count is that of the traces that are left.
    pub fn values(&self) -> TraceValues {
        let left = self.left.load(Relaxed);
        TraceValues { count: i32::try_from(left).unwrap_or(i32::MAX), ..self.values }
    }

    /// Decides on a request: one of every `rate` is sampled until `count` is used up. `forced`: the
    /// caller traces it, so that it is sampled in any case.
    pub fn sample(self: &Arc<Self>, forced: bool) -> Option<SampledBy> {
        if self.problem.is_some() {
            return None;
        }
        let allowed = self.is_due() && self.draw_count();
        if !allowed && !forced {
            return None;
        }
        let collector = self.file.is_some().then(|| {
            self.created.fetch_add(1, Relaxed);
            Arc::clone(self)
        });
        Some(SampledBy { levels: self.values.levels, collector })
    }

    /// Counts requests, unless each one is due.
    fn is_due(&self) -> bool {
        let rate = u64::from(self.values.rate);
        rate <= 1 || (self.seen.fetch_add(1, Relaxed) + 1).is_multiple_of(rate)
    }

    /// Draws one trace from the count.
    fn draw_count(&self) -> bool {
        // Without a count, which most settings do not have, nothing is written.
        if self.values.count < 0 {
            return true;
        }
        let draw = |left: i64| (left > 0).then(|| left - 1);
        self.left.fetch_update(Relaxed, Relaxed, draw).is_ok()
    }
}

impl Drop for TraceSetting {
    /// What is left goes to a file: the setting was replaced, or the server ends.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            self.collected.get_mut().end(file, &self.values);
        }
    }
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
