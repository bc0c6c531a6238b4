//! Statistics of one model version: sharded counters that are merged when read.
//!
//! Each instance writes its own shard, so instances do not wait for each other and models share nothing. What is counted
//! when: docs/protocol/v1.md §9.2 and docs/protocol/v2.md §2.13.

mod counters; // what is counted
mod execution; // one execution of a batch

pub use counters::{
    CLOSE_REASONS, Counters, ExecutionCounters, LOAD_RATIO_BOUNDS, RequestCounters, Span,
};
pub use execution::{Execution, OutstandingExecutions};

use crate::clock::wall_ms;
use crate::sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a request failed, as the metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Queue full or queue timeout.
    Rejected,
    Canceled,
    /// An error during execution.
    Backend,
    /// Everything else, e.g. invalid requests.
    Other,
}

pub const FAILURE_REASONS: [(FailureReason, &str); 4] = [
    (FailureReason::Rejected, "REJECTED"),
    (FailureReason::Canceled, "CANCELED"),
    (FailureReason::Backend, "BACKEND"),
    (FailureReason::Other, "OTHER"),
];

/// Runs of warm-up samples by name.
pub type WarmupSpans = BTreeMap<Arc<str>, Span>;

/// See the module text.
pub struct VersionStats {
    /// Shard 0 is for failures before execution, shard i + 1 for instance i.
    shards: Box<[Mutex<Counters>]>,
    /// UUIDs of the GPUs of instances, by instance; shorter than the list of instances if the last ones have none.
    gpus: Mutex<Vec<Option<Arc<str>>>>,
    /// Of the slowest instance, sample by sample.
    warmup: Mutex<WarmupSpans>,
    /// The counters of the time when the model had fewer instances, which may still write them.
    before: Option<Arc<VersionStats>>,
}

impl VersionStats {
    pub fn new(instances: usize) -> Self {
        let shards = (0..=instances).map(|_| Mutex::default()).collect();
        Self { shards, gpus: Mutex::default(), warmup: Mutex::default(), before: None }
    }

    /// Instances with counters of their own.
    pub fn instances(&self) -> usize {
        self.shards.len() - 1
    }

    /// The counters of a version that is loaded again with this number of instances: these, or new ones with more shards
    /// that include these.
    pub fn continued(self: &Arc<Self>, instances: usize) -> Arc<Self> {
        if instances < self.shards.len() {
            return Arc::clone(self);
        }
        let gpus = Mutex::new(self.gpus.lock().clone());
        Arc::new(Self { gpus, before: Some(Arc::clone(self)), ..Self::new(instances) })
    }

    /// A request of `batch` rows succeeded at `end_ns`.
    pub fn success(
        &self,
        batch: u32,
        received_ns: u64,
        queued_ns: u64,
        end_ns: u64,
        execution: &Execution,
    ) {
        let [input, infer, output] = execution.phases(end_ns);
        let compute = end_ns.saturating_sub(execution.start_ns);
        let request = end_ns.saturating_sub(received_ns);
        let credit = !execution.credited.swap(true, Ordering::Relaxed);
        let ratio = request as f64 / compute.max(1) as f64;
        let bucket =
            LOAD_RATIO_BOUNDS.iter().position(|b| ratio <= *b).unwrap_or(LOAD_RATIO_BOUNDS.len());

        let mut counters = self.shard(execution.shard + 1);
        let r = counters.requests.entry(batch).or_default();
        r.success.add(request);
        r.queue.add(execution.start_ns.saturating_sub(queued_ns));
        r.compute.add(compute);
        r.compute_input.add(input);
        r.compute_infer.add(infer);
        r.compute_output.add(output);
        if credit {
            let e = counters.executions.entry(execution.rows).or_default();
            e.compute_input.add(input);
            e.compute_infer.add(infer);
            e.compute_output.add(output);
            counters.execution_count += 1;
        }
        counters.inference_count += u64::from(batch.max(1));
        counters.last_inference_ms = wall_ms();
        counters.load_ratio[bucket] += 1;
        counters.load_ratio_sum += ratio;
    }

    /// A batch of `rows` rows goes to instance `shard`; `close_reason` is an index of [`CLOSE_REASONS`].
    pub fn batch(&self, shard: usize, close_reason: usize, rows: u32) {
        let mut counters = self.shard(shard + 1);
        counters.batches_closed[close_reason] += 1;
        *counters.batch_rows.entry(rows).or_default() += 1;
    }

    /// A request failed after `ns`. `batch` 0 = not known yet.
    pub fn failure(&self, batch: u32, ns: u64, reason: FailureReason) {
        let mut counters = self.shard(0);
        counters.requests.entry(batch).or_default().failed.add(ns);
        counters.last_inference_ms = wall_ms();
        if let Some(i) = FAILURE_REASONS.iter().position(|(r, _)| *r == reason) {
            counters.failures[i] += 1;
        }
    }

    /// A cancelled request ended, before or during its execution.
    pub fn cancelled(&self, executing: bool) {
        self.shard(0).cancelled[usize::from(executing)] += 1;
    }

    /// An instance has run all warm-up samples.
    pub fn warmed_up(&self, spans: WarmupSpans) {
        let mut all = self.warmup.lock();
        for (sample, span) in spans {
            let longest = all.entry(sample).or_default();
            if span.ns >= longest.ns {
                *longest = span;
            }
        }
    }

    /// Empty unless the model is warmed up.
    pub fn warmup(&self) -> WarmupSpans {
        self.warmup.lock().clone()
    }

    /// Instance `shard` is on the GPU with this UUID, or on none.
    pub fn placed(&self, shard: usize, gpu: Option<String>) {
        let mut gpus = self.gpus.lock();
        if gpus.len() <= shard {
            gpus.resize(shard + 1, None);
        }
        gpus[shard] = gpu.map(Arc::from);
    }

    /// [`VersionStats::snapshot`] by the GPU of the instance. `None`: instances on the CPU, and failures before execution.
    pub fn by_gpu(&self) -> BTreeMap<Option<Arc<str>>, Counters> {
        let mut sums = self.before.as_ref().map(|before| before.by_gpu()).unwrap_or_default();
        let gpus = self.gpus.lock();
        for (i, shard) in self.shards.iter().enumerate() {
            let gpu = i.checked_sub(1).and_then(|instance| gpus.get(instance)).cloned().flatten();
            sums.entry(gpu).or_default().merge(&shard.lock());
        }
        sums
    }

    pub fn snapshot(&self) -> Counters {
        let mut sum = self.before.as_ref().map(|before| before.snapshot()).unwrap_or_default();
        for shard in &self.shards {
            sum.merge(&shard.lock());
        }
        sum
    }

    fn shard(&self, i: usize) -> MutexGuard<'_, Counters> {
        let i = i.min(self.shards.len() - 1);
        self.shards[i].lock()
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
