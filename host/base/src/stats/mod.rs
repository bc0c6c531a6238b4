//! Statistics of one model version: sharded counters that are merged when read.
//!
//! Each instance writes its own shard, so instances do not wait for each other and models share
//! nothing. What is counted when: docs/protocol/v1.md §9.2 and docs/protocol/v2.md §2.13.

mod counters;
mod execution;
mod histogram;
mod latency;
mod quantiles;
mod service_time;

pub use counters::{
    CLOSE_REASONS, DurationSum, ExecutionCounters, LOAD_RATIO_BOUNDS, RequestCounters,
    ResponseCounters, VersionCounters,
};
pub use execution::{BatchExecution, ExecutionHold, OutstandingExecutions};
pub use histogram::{DurationHistogram, MAX_BOUNDS};
pub use latency::{
    FIRST_RESPONSE, HISTOGRAMS, HistogramBuckets, LatencySettings, LatencySummaries,
};
pub use quantiles::RecentDurations;
pub use service_time::ServiceEstimate;

use crate::clock::now_ns;
use latency::LatencyHistograms;
use parking_lot::{Mutex, MutexGuard};
use service_time::{ExecutedWork, ServiceTime};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a request failed, as the metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Queue full or queue timeout.
    Rejected,
    Canceled,
    /// An error during execution.
    Backend,
    /// Everything else.
    Other,
    /// It would have waited too long in its queue, and was not queued (`--refuse-late-requests`).
    Late,
    /// Refused before it was queued, e.g. for a wrong shape. Not a failure for metrics and v2
    /// statistics, as in Triton; one for v1, as in TRTIS.
    Refused,
}

/// The reasons that the metrics show as failures.
pub const FAILURE_REASONS: [(FailureReason, &str); 5] = [
    (FailureReason::Rejected, "REJECTED"),
    (FailureReason::Canceled, "CANCELED"),
    (FailureReason::Backend, "BACKEND"),
    (FailureReason::Other, "OTHER"),
    (FailureReason::Late, "LATE"),
];

/// What became of a response of a decoupled model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseOutcome {
    Success,
    Fail,
    /// The end of the stream, without data.
    Empty,
    Cancel,
}

/// Responses at this position of a stream and behind it are counted together, since a stream may be
/// of any length.
pub const MAX_RESPONSE_INDEX: u32 = 999;

/// Runs of warm-up samples by name.
pub type WarmupSpans = BTreeMap<Arc<str>, DurationSum>;

/// One shard, on cache lines of its own: other threads write those beside it.
#[repr(align(128))]
struct CounterShard(Mutex<VersionCounters>);

/// Statistics of one model version, with one shard for each instance.
pub struct VersionStats {
    /// Shard 0 is for failures before execution, shard i + 1 for instance i.
    shards: Box<[CounterShard]>,
    /// UUIDs of the GPUs of instances, by instance; shorter than the list of instances if the last
    /// ones have none.
    gpus: Mutex<Vec<Option<Arc<str>>>>,
    /// Warm-up times of the slowest instance, sample by sample.
    warmup: Mutex<WarmupSpans>,
    buckets: HistogramBuckets,
    /// Whether histograms and summaries are recorded.
    recorded: (bool, bool),
    service_time: ServiceTime,
    /// Requests have any number of responses: the first one is counted when it comes.
    decoupled: AtomicBool,
    /// The counters of the time when the model had fewer instances, which may still write them.
    before: Option<Arc<VersionStats>>,
}

impl VersionStats {
    pub fn new(instances: usize) -> Self {
        Self::with_buckets(instances, HistogramBuckets::default(), &LatencySettings::default())
    }

    pub fn with_buckets(
        instances: usize,
        buckets: HistogramBuckets,
        settings: &LatencySettings,
    ) -> Self {
        Self::recording(instances, buckets, (settings.histograms, settings.summaries))
    }

    fn recording(instances: usize, buckets: HistogramBuckets, recorded: (bool, bool)) -> Self {
        let (histograms, summaries) = recorded;
        let shard = |i: usize| {
            let counters = VersionCounters {
                latencies: (histograms && i > 0)
                    .then(|| Box::new(LatencyHistograms::new(&buckets))),
                summaries: (summaries && i > 0).then(Box::default),
                ..VersionCounters::default()
            };
            CounterShard(Mutex::new(counters))
        };
        Self {
            shards: (0..=instances).map(shard).collect(),
            gpus: Mutex::default(),
            warmup: Mutex::default(),
            buckets,
            recorded,
            service_time: ServiceTime::default(),
            decoupled: AtomicBool::new(false),
            before: None,
        }
    }

    /// Instances with counters of their own.
    pub fn instances(&self) -> usize {
        self.shards.len() - 1
    }

    /// The counters of a version that is loaded again with this number of instances and these
    /// buckets: these, or new ones that include these.
    pub fn continued(self: &Arc<Self>, instances: usize, buckets: HistogramBuckets) -> Arc<Self> {
        if instances < self.shards.len() && self.buckets == buckets {
            return Arc::clone(self);
        }
        let gpus = Mutex::new(self.gpus.lock().clone());
        let before = Some(Arc::clone(self));
        Arc::new(Self { gpus, before, ..Self::recording(instances, buckets, self.recorded) })
    }

    /// [`VersionStats::continued`] with the buckets as they are.
    pub fn resized(self: &Arc<Self>, instances: usize) -> Arc<Self> {
        self.continued(instances, self.buckets.clone())
    }

    /// A request of `batch` rows succeeded at `end_ns`.
    pub fn success(
        &self,
        batch: u32,
        received_ns: u64,
        queued_ns: u64,
        end_ns: u64,
        execution: &BatchExecution,
    ) {
        let [input, infer, output] = execution.phases(end_ns);
        let compute = end_ns.saturating_sub(execution.start_ns);
        let request = end_ns.saturating_sub(received_ns);
        let credit = !execution.credited.swap(true, Ordering::Relaxed);
        let ratio = request as f64 / compute.max(1) as f64;
        let queue = execution.start_ns.saturating_sub(queued_ns);
        // Counted, not searched: all comparisons at once, without branches.
        let bucket = LOAD_RATIO_BOUNDS.iter().filter(|bound| ratio > **bound).count();

        let mut counters = self.shard(execution.shard + 1);
        let r = counters.requests.entry(batch).or_default();
        r.success.add(request);
        r.queue.add(queue);
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
            counters.padding_rows += u64::from(execution.padding());
        }
        counters.inference_count += u64::from(batch.max(1));
        counters.last_inference_ns = end_ns;
        counters.load_ratio[bucket] += 1;
        counters.load_ratio_sum += ratio;
        if let Some(latencies) = &mut counters.latencies {
            latencies.add_request(request, queue, compute);
            if !self.decoupled.load(Ordering::Relaxed) {
                // The only response is the first.
                latencies.add_first_response(request);
            }
        }
        if let Some(summaries) = &mut counters.summaries {
            summaries.add(end_ns, [request, queue, input, infer, output]);
        }
    }

    /// A request of `batch` rows was answered at `end_ns` by the response cache, or by the execution
    /// of an equal request, `request_ns` after its first byte. It waited `queue_ns` for that
    /// execution, and was looked up for `lookup_ns`.
    pub fn cache_hit(&self, batch: u32, end_ns: u64, [request_ns, queue_ns, lookup_ns]: [u64; 3]) {
        let mut counters = self.shard(1);
        let r = counters.requests.entry(batch).or_default();
        r.success.add(request_ns);
        r.queue.add(queue_ns);
        counters.cache_hit.add(lookup_ns);
        counters.last_inference_ns = end_ns;
        if let Some(latencies) = &mut counters.latencies {
            latencies.add_cached(request_ns, queue_ns);
        }
        if let Some(summaries) = &mut counters.summaries {
            summaries.add_hit(end_ns, lookup_ns);
        }
    }

    /// A request that the response cache did not have succeeds; it was looked up for `lookup_ns`.
    pub fn cache_miss(&self, lookup_ns: u64) {
        let mut counters = self.shard(1);
        counters.cache_miss.add(lookup_ns);
        if let Some(summaries) = &mut counters.summaries {
            summaries.add_miss(now_ns(), lookup_ns);
        }
    }

    /// The response to a request of [`VersionStats::cache_miss`] was inserted in `ns`. Counted apart,
    /// because a client that has the response finds the miss in the statistics.
    pub fn cache_insertion(&self, ns: u64) {
        self.shard(1).cache_miss.ns += ns;
    }

    /// A batch of `requests` requests with `rows` rows goes to instance `shard`; `close_reason` is
    /// an index of [`CLOSE_REASONS`].
    pub fn batch(&self, shard: usize, close_reason: usize, requests: u32, rows: u32) {
        let mut counters = self.shard(shard + 1);
        counters.started += u64::from(requests);
        counters.batches_closed[close_reason] += 1;
        *counters.batch_rows.entry(rows).or_default() += 1;
    }

    /// A request begins to be executed without an instance: the steps of an ensemble.
    pub fn started(&self) {
        self.shard(1).started += 1;
    }

    /// A request failed after `ns`. `batch` 0 = not known yet. `executing`: it had been handed to
    /// an instance.
    pub fn failure(&self, batch: u32, ns: u64, reason: FailureReason, executing: bool) {
        let mut counters = self.shard(0);
        counters.requests.entry(batch).or_default().failed.add(ns);
        counters.last_inference_ns = now_ns();
        counters.failed_executing += u64::from(executing);
        match FAILURE_REASONS.iter().position(|(r, _)| *r == reason) {
            Some(i) => counters.failures[i] += 1,
            None => counters.refused.add(ns),
        }
    }

    /// A step of a request to this ensemble failed: the request counts once more in metrics and v2
    /// statistics than `failure` counts it.
    pub fn step_failure(&self, ns: u64) {
        let mut counters = self.shard(0);
        counters.step_failures.add(ns);
        if let Some(i) = FAILURE_REASONS.iter().position(|(r, _)| *r == FailureReason::Other) {
            counters.failures[i] += 1;
        }
    }

    /// Whether the version is decoupled, which a reload may change.
    pub fn set_decoupled(&self, decoupled: bool) {
        self.decoupled.store(decoupled, Ordering::Relaxed);
    }

    /// The first response of a decoupled model, `ns` after the first byte of its request.
    pub fn first_response(&self, shard: usize, ns: u64) {
        if let Some(latencies) = &mut self.shard(shard + 1).latencies {
            latencies.add_first_response(ns);
        }
    }

    /// Response number `index` of a request to a decoupled model, `ns` after the one before it or
    /// the start of the execution.
    pub fn response(&self, shard: usize, index: u32, ns: u64, outcome: ResponseOutcome) {
        let mut counters = self.shard(shard + 1);
        let responses = counters.responses.entry(index.min(MAX_RESPONSE_INDEX)).or_default();
        match outcome {
            ResponseOutcome::Empty => responses.empty.add(ns),
            ResponseOutcome::Cancel => responses.cancel.add(ns),
            ResponseOutcome::Success | ResponseOutcome::Fail => {
                responses.compute_infer.add(ns);
                responses.compute_output.add(0);
                match outcome {
                    ResponseOutcome::Success => responses.success.add(ns),
                    _ => responses.fail.add(ns),
                }
            }
        }
    }

    /// The delivery of that response took `ns`. Counted apart, because a client that has the
    /// response finds it in the statistics.
    pub fn response_delivered(&self, shard: usize, index: u32, ns: u64) {
        let mut counters = self.shard(shard + 1);
        if let Some(responses) = counters.responses.get_mut(&index.min(MAX_RESPONSE_INDEX)) {
            responses.compute_output.ns += ns;
            responses.success.ns += ns;
        }
    }

    /// What the executions of the last second or more have taken, to predict how long requests
    /// wait. Sums the counters about once a second; otherwise it reads a few atomics.
    pub fn service_estimate(&self, now_ns: u64, instances: usize) -> ServiceEstimate {
        self.service_time.estimate(now_ns, instances, || self.executed_work())
    }

    fn executed_work(&self) -> ExecutedWork {
        let mut sum = self.before.as_ref().map(|before| before.executed_work()).unwrap_or_default();
        for shard in &self.shards {
            let counters = shard.0.lock();
            let requests = counters.requests.values().map(|r| r.success.count).sum::<u64>();
            sum.busy_ns += counters.execution_ns();
            sum.executions += counters.execution_count;
            // A shard counts its hits as successes, too.
            sum.requests += requests.saturating_sub(counters.cache_hit.count);
        }
        sum
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

    /// [`VersionStats::snapshot`] by the GPU of the instance. `None`: instances on the CPU, and
    /// failures before execution.
    pub fn by_gpu(&self) -> BTreeMap<Option<Arc<str>>, VersionCounters> {
        let mut sums = self.before.as_ref().map(|before| before.by_gpu()).unwrap_or_default();
        let gpus = self.gpus.lock();
        for (i, shard) in self.shards.iter().enumerate() {
            let gpu = i.checked_sub(1).and_then(|instance| gpus.get(instance)).cloned().flatten();
            sums.entry(gpu).or_default().merge(&shard.0.lock());
        }
        sums
    }

    pub fn snapshot(&self) -> VersionCounters {
        let mut sum = self.before.as_ref().map(|before| before.snapshot()).unwrap_or_default();
        for shard in &self.shards {
            sum.merge(&shard.0.lock());
        }
        sum
    }

    fn shard(&self, i: usize) -> MutexGuard<'_, VersionCounters> {
        let i = i.min(self.shards.len() - 1);
        self.shards[i].0.lock()
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
