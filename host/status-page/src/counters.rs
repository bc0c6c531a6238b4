//! What is read of the counters of a model version, and the difference of two readings.

use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::stats::{CLOSE_REASONS, DurationHistogram, FAILURE_REASONS, VersionCounters};

/// Request, queue and compute, in seconds: the first of [`trtserver_base::stats::HISTOGRAMS`].
const LATENCIES: usize = 3;

/// A reading of the counters of a version; or, as a difference, what came between two of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionTotals {
    pub requests: u64,
    pub request_ns: u64,
    pub queue_ns: u64,
    pub compute_ns: u64,
    /// In the order of [`FAILURE_REASONS`].
    pub failures: [u64; FAILURE_REASONS.len()],
    pub refused: u64,
    /// Queued and executing.
    pub cancelled: [u64; 2],
    pub rows: u64,
    pub executions: u64,
    /// In the order of [`CLOSE_REASONS`].
    pub closed: [u64; CLOSE_REASONS.len()],
    pub batch_rows: BTreeMap<u32, u64>,
    /// Durations of requests, of their waits and of their executions; empty where none are
    /// recorded.
    pub latencies: Vec<Latency>,
}

/// Durations by bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Upper bounds in seconds; +Inf follows.
    bounds: Arc<[f64]>,
    counts: Box<[u64]>,
}

impl VersionTotals {
    /// `bounds` are those of a reading before, to be shared.
    pub fn read(counters: &VersionCounters, before: Option<&Self>) -> Self {
        let total = counters.total();
        let histograms = counters.latencies.iter().flat_map(|latencies| latencies.histograms());
        let latency = |(at, histogram): (usize, &DurationHistogram)| {
            let known = before.and_then(|before| before.latencies.get(at));
            let bounds = match known {
                Some(known) if *known.bounds == *histogram.bounds() => Arc::clone(&known.bounds),
                _ => histogram.bounds().into(),
            };
            Latency { bounds, counts: histogram.counts().into() }
        };
        Self {
            requests: total.success.count,
            request_ns: total.success.ns,
            queue_ns: total.queue.ns,
            compute_ns: total.compute.ns,
            failures: counters.failures,
            refused: counters.refused.count,
            cancelled: counters.cancelled,
            rows: counters.inference_count,
            executions: counters.execution_count,
            closed: counters.batches_closed,
            batch_rows: counters.batch_rows.clone(),
            latencies: histograms.take(LATENCIES).enumerate().map(latency).collect(),
        }
    }

    /// What came after `before`. `None` if the counters began anew since.
    pub fn since(&self, before: &Self) -> Option<Self> {
        let rows = |rows: &u32| before.batch_rows.get(rows).copied().unwrap_or(0);
        let batch_rows: Option<BTreeMap<u32, u64>> = self
            .batch_rows
            .iter()
            .map(|(size, n)| Some((*size, n.checked_sub(rows(size))?)))
            .filter(|entry| !matches!(entry, Some((_, 0))))
            .collect();
        let latencies = self.latencies.iter().enumerate();
        let latencies = latencies.map(|(at, now)| now.since(before.latencies.get(at)));
        Some(Self {
            requests: self.requests.checked_sub(before.requests)?,
            request_ns: self.request_ns.checked_sub(before.request_ns)?,
            queue_ns: self.queue_ns.checked_sub(before.queue_ns)?,
            compute_ns: self.compute_ns.checked_sub(before.compute_ns)?,
            failures: differences(self.failures, before.failures)?,
            refused: self.refused.checked_sub(before.refused)?,
            cancelled: differences(self.cancelled, before.cancelled)?,
            rows: self.rows.checked_sub(before.rows)?,
            executions: self.executions.checked_sub(before.executions)?,
            closed: differences(self.closed, before.closed)?,
            batch_rows: batch_rows?,
            latencies: latencies.collect::<Option<_>>()?,
        })
    }

    /// Nothing was counted.
    pub fn is_empty(&self) -> bool {
        let failed = self.failures.iter().chain(&self.cancelled).chain(&self.closed).sum::<u64>();
        self.requests + self.refused + self.executions + failed == 0
    }

    /// Batches, and their mean number of rows.
    pub fn batches(&self) -> (u64, f64) {
        let (mut batches, mut rows) = (0, 0);
        for (size, n) in &self.batch_rows {
            batches += n;
            rows += u64::from(*size) * n;
        }
        (batches, rows as f64 / batches.max(1) as f64)
    }

    /// The duration in microseconds below which `quantile` of the requests, waits or executions
    /// are, by its place in
    /// [`VersionTotals::latencies`].
    pub fn quantile_us(&self, histogram: usize, quantile: f64) -> Option<f64> {
        self.latencies.get(histogram)?.quantile_us(quantile)
    }
}

fn differences<const N: usize>(now: [u64; N], before: [u64; N]) -> Option<[u64; N]> {
    let mut result = now;
    for (value, before) in result.iter_mut().zip(before) {
        *value = value.checked_sub(before)?;
    }
    Some(result)
}

impl Latency {
    /// `before` has other bounds after a load that changed them: then all counts are new.
    fn since(&self, before: Option<&Self>) -> Option<Self> {
        let Some(before) = before.filter(|before| before.bounds == self.bounds) else {
            return Some(self.clone());
        };
        let pairs = self.counts.iter().zip(&before.counts);
        let counts: Option<Box<[u64]>> = pairs.map(|(now, then)| now.checked_sub(*then)).collect();
        Some(Self { bounds: Arc::clone(&self.bounds), counts: counts? })
    }

    /// Interpolated within its bucket; the highest bound for what lies above it.
    fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let total: u64 = self.counts.iter().sum();
        let rank = quantile * total as f64;
        let mut below = 0;
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if (below + count) as f64 >= rank {
                let from = if at == 0 { 0.0 } else { self.bounds[at - 1] };
                let to = self.bounds.get(at).copied().unwrap_or(from);
                let share = ((rank - below as f64) / *count as f64).clamp(0.0, 1.0);
                return Some((from + (to - from) * share) * 1e6);
            }
            below += count;
        }
        None
    }
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
