//! What is counted for a model version.

use super::latency::{LatencyHistograms, LatencySummaries};
use crate::clock::unix_ms;
use std::collections::BTreeMap;

/// Names of the scheduler's `CloseReason`s in metrics and statistics, in the same order.
pub const CLOSE_REASONS: [&str; 7] =
    ["full", "preferred", "delay", "alone", "shape", "priority", "sequence"];

/// Upper bounds of the load-ratio histogram (docs/protocol/v1.md §10); +Inf follows.
pub const LOAD_RATIO_BOUNDS: [f64; 7] = [1.05, 1.10, 1.25, 1.5, 2.0, 10.0, 50.0];

/// A count and the sum of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSum {
    pub count: u64,
    pub ns: u64,
}

impl DurationSum {
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns += ns;
    }

    pub(super) fn merge(&mut self, other: &DurationSum) {
        self.count += other.count;
        self.ns += other.ns;
    }
}

/// Counters of requests of one batch size.
#[derive(Clone, Debug, Default)]
pub struct RequestCounters {
    pub success: DurationSum,
    pub failed: DurationSum,
    pub queue: DurationSum,
    pub compute: DurationSum,
    pub compute_input: DurationSum,
    pub compute_infer: DurationSum,
    pub compute_output: DurationSum,
}

/// Counters of executions with one number of rows.
#[derive(Clone, Debug, Default)]
pub struct ExecutionCounters {
    pub compute_input: DurationSum,
    pub compute_infer: DurationSum,
    pub compute_output: DurationSum,
}

/// Counters of the responses at one position of their stream.
#[derive(Clone, Debug, Default)]
pub struct ResponseCounters {
    pub compute_infer: DurationSum,
    pub compute_output: DurationSum,
    pub success: DurationSum,
    pub fail: DurationSum,
    /// The final response, if it has no data.
    pub empty: DurationSum,
    pub cancel: DurationSum,
}

/// Everything counted for one version.
#[derive(Clone, Debug, Default)]
pub struct VersionCounters {
    /// Request counters by batch size; 0 if the request failed before its batch size was known.
    pub requests: BTreeMap<u32, RequestCounters>,
    /// Execution counters by the number of rows of the batch.
    pub executions: BTreeMap<u32, ExecutionCounters>,
    pub inference_count: u64,
    pub execution_count: u64,
    /// Rows with which backends filled batches up to sizes that they are prepared for.
    pub padding_rows: u64,
    /// Requests that were handed to an instance.
    pub started: u64,
    /// Started requests that failed.
    pub failed_executing: u64,
    /// Requests refused before they were queued, e.g. for a wrong shape; `requests` has them as
    /// failed ones, too.
    pub refused: DurationSum,
    /// Requests to an ensemble of which a step failed; v2 counts them twice as failures.
    pub step_failures: DurationSum,
    /// Of the server's clock, which requests have read already; 0 = never.
    pub last_inference_ns: u64,
    /// In the order of [`super::FAILURE_REASONS`].
    pub failures: [u64; super::FAILURE_REASONS.len()],
    /// Requests answered without an execution of their own, and how long they were looked up.
    pub cache_hit: DurationSum,
    /// Executed requests that were looked up before, and how long look-up and insertion took.
    pub cache_miss: DurationSum,
    /// Cancelled requests: before execution, and during execution.
    pub cancelled: [u64; 2],
    /// Batches by close reason, and by their rows without null requests.
    pub batches_closed: [u64; CLOSE_REASONS.len()],
    pub batch_rows: BTreeMap<u32, u64>,
    /// Request time over compute time: counts per bucket (+Inf last), and their sum.
    pub load_ratio: [u64; LOAD_RATIO_BOUNDS.len() + 1],
    pub load_ratio_sum: f64,
    /// Response counters of decoupled models, by position in the stream.
    pub responses: BTreeMap<u32, ResponseCounters>,
    pub latencies: Option<Box<LatencyHistograms>>,
    pub summaries: Option<Box<LatencySummaries>>,
}

impl VersionCounters {
    /// Requests that were handed to an instance and have no final response.
    pub fn executing(&self) -> u64 {
        let executed = self.total().success.count.saturating_sub(self.cache_hit.count);
        let ended = executed + self.failed_executing;
        self.started.saturating_sub(ended)
    }

    /// Milliseconds since the epoch, 0 = never.
    pub fn last_inference_ms(&self) -> u64 {
        match self.last_inference_ns {
            0 => 0,
            ns => unix_ms(ns),
        }
    }

    /// Time that instances spent on executions, in nanoseconds.
    pub fn execution_ns(&self) -> u64 {
        let executions = self.executions.values();
        executions.map(|e| e.compute_input.ns + e.compute_infer.ns + e.compute_output.ns).sum()
    }

    /// The sum over all batch sizes.
    pub fn total(&self) -> RequestCounters {
        let mut total = RequestCounters::default();
        self.requests.values().for_each(|r| total.merge(r));
        total
    }

    pub(super) fn merge(&mut self, other: &VersionCounters) {
        for (batch, r) in &other.requests {
            self.requests.entry(*batch).or_default().merge(r);
        }
        for (rows, e) in &other.executions {
            let sum = self.executions.entry(*rows).or_default();
            sum.compute_input.merge(&e.compute_input);
            sum.compute_infer.merge(&e.compute_infer);
            sum.compute_output.merge(&e.compute_output);
        }
        self.inference_count += other.inference_count;
        self.execution_count += other.execution_count;
        self.padding_rows += other.padding_rows;
        self.started += other.started;
        self.failed_executing += other.failed_executing;
        self.refused.merge(&other.refused);
        self.step_failures.merge(&other.step_failures);
        self.cache_hit.merge(&other.cache_hit);
        self.cache_miss.merge(&other.cache_miss);
        self.last_inference_ns = self.last_inference_ns.max(other.last_inference_ns);
        self.failures.iter_mut().zip(other.failures).for_each(|(a, b)| *a += b);
        self.cancelled.iter_mut().zip(other.cancelled).for_each(|(a, b)| *a += b);
        let closed = self.batches_closed.iter_mut().zip(other.batches_closed);
        closed.for_each(|(a, b)| *a += b);
        for (rows, n) in &other.batch_rows {
            *self.batch_rows.entry(*rows).or_default() += n;
        }
        self.load_ratio.iter_mut().zip(other.load_ratio).for_each(|(a, b)| *a += b);
        self.load_ratio_sum += other.load_ratio_sum;
        for (index, responses) in &other.responses {
            self.responses.entry(*index).or_default().merge(responses);
        }
        merge_boxed(&mut self.latencies, &other.latencies, LatencyHistograms::merge);
        merge_boxed(&mut self.summaries, &other.summaries, LatencySummaries::merge);
    }
}

fn merge_boxed<T: Clone>(ours: &mut Option<Box<T>>, other: &Option<Box<T>>, merge: fn(&mut T, &T)) {
    match (ours, other) {
        (Some(ours), Some(other)) => merge(ours, other),
        (ours @ None, other) => ours.clone_from(other),
        (Some(_), None) => {}
    }
}

impl ResponseCounters {
    fn merge(&mut self, other: &ResponseCounters) {
        self.compute_infer.merge(&other.compute_infer);
        self.compute_output.merge(&other.compute_output);
        self.success.merge(&other.success);
        self.fail.merge(&other.fail);
        self.empty.merge(&other.empty);
        self.cancel.merge(&other.cancel);
    }
}

impl RequestCounters {
    pub(super) fn merge(&mut self, other: &RequestCounters) {
        self.success.merge(&other.success);
        self.failed.merge(&other.failed);
        self.queue.merge(&other.queue);
        self.compute.merge(&other.compute);
        self.compute_input.merge(&other.compute_input);
        self.compute_infer.merge(&other.compute_infer);
        self.compute_output.merge(&other.compute_output);
    }
}
