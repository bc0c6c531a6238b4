//! Counters of one model version: written beside the request path, merged when somebody looks.
//!
//! Each instance writes a shard of its own, so two instances never wait for each other and two models
//! share nothing. What is counted when: contract/v1 §9.2 and contract/v2 §2.13.

use crate::clock::wall_ms;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often, and how long in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub count: u64,
    pub ns: u64,
}

impl Span {
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns += ns;
    }

    fn merge(&mut self, other: &Span) {
        self.count += other.count;
        self.ns += other.ns;
    }
}

/// Why a request failed, as the metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Queue full, or its time in the queue ran out.
    Rejected,
    Canceled,
    /// An error during execution.
    Backend,
    /// Everything else: refused before it was queued.
    Other,
}

pub const FAILURE_REASONS: [(FailureReason, &str); 4] = [
    (FailureReason::Rejected, "REJECTED"),
    (FailureReason::Canceled, "CANCELED"),
    (FailureReason::Backend, "BACKEND"),
    (FailureReason::Other, "OTHER"),
];

/// Why a batch was closed, as metrics and statistics name it. The numbers are those of the scheduler's `CloseReason`.
pub const CLOSE_REASONS: [&str; 7] =
    ["full", "preferred", "delay", "alone", "shape", "priority", "sequence"];

/// Upper bounds of the load-ratio histogram (contract/v1 §10); +Inf follows.
pub const LOAD_RATIO_BOUNDS: [f64; 7] = [1.05, 1.10, 1.25, 1.5, 2.0, 10.0, 50.0];

/// One call of a backend: shared by the requests of its batch.
pub struct Execution {
    /// Which instance's shard the counters go to.
    pub shard: usize,
    /// Sum of the requests' batch sizes.
    pub rows: u32,
    pub start_ns: u64,
    /// Inputs ready, outputs begun: told by the plugin, 0 until then.
    compute_ns: AtomicU64,
    output_ns: AtomicU64,
    /// Only the first success of a batch counts the execution.
    credited: AtomicBool,
    /// Replies that have not ended.
    open: AtomicU32,
    outstanding: Arc<OutstandingExecutions>,
}

/// Executions of one instance that still owe answers.
#[derive(Default)]
pub struct OutstandingExecutions {
    state: Mutex<OutstandingState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutstandingState {
    executions: usize,
    /// The instance's thread waits; without it nobody is called, which saves the system call.
    waiting: bool,
}

impl OutstandingExecutions {
    fn begin(&self) {
        self.lock().executions += 1;
    }

    fn end(&self) {
        let mut state = self.lock();
        state.executions -= 1;
        let call = state.waiting;
        drop(state);
        if call {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutstandingState> {
        self.state.lock()
    }

    /// At most `most` executions owe answers.
    pub fn at_most(&self, most: usize) -> bool {
        self.lock().executions <= most
    }

    /// Waits until at most `most` executions owe answers; false when the time was not enough.
    pub fn wait_at_most(&self, most: usize, limit: Option<Duration>) -> bool {
        let deadline = limit.map(|l| Instant::now() + l);
        let mut state = self.lock();
        let mut in_time = true;
        while state.executions > most && in_time {
            state.waiting = true;
            state = match deadline {
                None => self.changed.wait(state),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    in_time = !left.is_zero();
                    self.changed.wait_timeout(state, left).0
                }
            };
        }
        state.waiting = false;
        state.executions <= most
    }
}

impl Execution {
    /// `calls` requests of together `rows` rows, begun at `start_ns` by the instance that counts in `shard`.
    pub fn new(
        shard: usize,
        calls: u32,
        rows: u32,
        start_ns: u64,
        outstanding: &Arc<OutstandingExecutions>,
    ) -> Self {
        outstanding.begin();
        Self {
            open: AtomicU32::new(calls),
            outstanding: Arc::clone(outstanding),
            shard,
            rows,
            start_ns,
            compute_ns: AtomicU64::new(0),
            output_ns: AtomicU64::new(0),
            credited: AtomicBool::new(false),
        }
    }

    /// Another one of the same instance, in the memory of `last` if nobody has that any more.
    pub fn next(last: &mut Option<Arc<Self>>, new: impl FnOnce() -> Self) -> Arc<Self> {
        let new = new();
        if let Some(last) = last {
            match Arc::get_mut(last) {
                Some(room) => *room = new,
                None => *last = Arc::new(new),
            }
            return Arc::clone(last);
        }
        Arc::clone(last.insert(Arc::new(new)))
    }

    /// One of its replies has ended.
    pub fn reply_ended(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.outstanding.end();
        }
    }

    /// Times as the plugin measured them; zeros and nonsense are dropped when read.
    pub fn note_times(&self, compute_ns: u64, output_ns: u64) {
        self.compute_ns.store(compute_ns, Ordering::Relaxed);
        self.output_ns.store(output_ns, Ordering::Relaxed);
    }

    /// What was noted: compute and output, 0 = nothing yet.
    pub fn noted_times(&self) -> [u64; 2] {
        [&self.compute_ns, &self.output_ns].map(|t| t.load(Ordering::Relaxed))
    }

    /// Durations of input, inference and output phases when the execution ends at `end_ns`.
    fn phases(&self, end_ns: u64) -> [u64; 3] {
        let within = |t: u64, from: u64| if t < from || t > end_ns { None } else { Some(t) };
        let compute =
            within(self.compute_ns.load(Ordering::Relaxed), self.start_ns).unwrap_or(self.start_ns);
        let output = within(self.output_ns.load(Ordering::Relaxed), compute).unwrap_or(end_ns);
        [compute - self.start_ns, output - compute, end_ns.saturating_sub(output)]
    }
}

/// Requests of one batch size.
#[derive(Clone, Debug, Default)]
pub struct RequestCounters {
    pub success: Span,
    pub failed: Span,
    pub queue: Span,
    pub compute: Span,
    pub compute_input: Span,
    pub compute_infer: Span,
    pub compute_output: Span,
}

/// Executions of one total batch size.
#[derive(Clone, Debug, Default)]
pub struct ExecutionCounters {
    pub compute_input: Span,
    pub compute_infer: Span,
    pub compute_output: Span,
}

/// Everything counted for one version.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// By the request's batch size; 0 when the failure came before it was known.
    pub requests: BTreeMap<u32, RequestCounters>,
    /// By the rows that the backend was given at once.
    pub executions: BTreeMap<u32, ExecutionCounters>,
    pub inference_count: u64,
    pub execution_count: u64,
    /// Milliseconds since the epoch, 0 = never.
    pub last_inference_ms: u64,
    /// In the order of [`FAILURE_REASONS`].
    pub failures: [u64; 4],
    /// Requests whose caller went away: before they were executed, and meanwhile.
    pub cancelled: [u64; 2],
    /// Batches given to instances: by why they were closed, and by their rows (null requests do not count).
    pub batches_closed: [u64; CLOSE_REASONS.len()],
    pub batch_rows: BTreeMap<u32, u64>,
    /// Request time over compute time: counts per bucket (+Inf last), and their sum.
    pub load_ratio: [u64; LOAD_RATIO_BOUNDS.len() + 1],
    pub load_ratio_sum: f64,
}

impl Counters {
    /// All batch sizes together.
    pub fn total(&self) -> RequestCounters {
        let mut total = RequestCounters::default();
        self.requests.values().for_each(|r| total.merge(r));
        total
    }

    fn merge(&mut self, other: &Counters) {
        for (batch, r) in &other.requests {
            self.requests.entry(*batch).or_default().merge(r);
        }
        for (rows, e) in &other.executions {
            let mine = self.executions.entry(*rows).or_default();
            mine.compute_input.merge(&e.compute_input);
            mine.compute_infer.merge(&e.compute_infer);
            mine.compute_output.merge(&e.compute_output);
        }
        self.inference_count += other.inference_count;
        self.execution_count += other.execution_count;
        self.last_inference_ms = self.last_inference_ms.max(other.last_inference_ms);
        self.failures.iter_mut().zip(other.failures).for_each(|(a, b)| *a += b);
        self.cancelled.iter_mut().zip(other.cancelled).for_each(|(a, b)| *a += b);
        let closed = self.batches_closed.iter_mut().zip(other.batches_closed);
        closed.for_each(|(a, b)| *a += b);
        for (rows, n) in &other.batch_rows {
            *self.batch_rows.entry(*rows).or_default() += n;
        }
        self.load_ratio.iter_mut().zip(other.load_ratio).for_each(|(a, b)| *a += b);
        self.load_ratio_sum += other.load_ratio_sum;
    }
}

impl RequestCounters {
    fn merge(&mut self, other: &RequestCounters) {
        self.success.merge(&other.success);
        self.failed.merge(&other.failed);
        self.queue.merge(&other.queue);
        self.compute.merge(&other.compute);
        self.compute_input.merge(&other.compute_input);
        self.compute_infer.merge(&other.compute_infer);
        self.compute_output.merge(&other.compute_output);
    }
}

/// Runs of each warm-up sample by name, and their duration.
pub type WarmupSpans = BTreeMap<Arc<str>, Span>;

/// See the module text.
pub struct VersionStats {
    /// Shard 0 is for failures before execution, shard i + 1 for instance i.
    shards: Box<[Mutex<Counters>]>,
    /// Of the instance that took longest, sample by sample.
    warmup: Mutex<WarmupSpans>,
    /// What was counted when the model had fewer instances; they may still add to it.
    before: Option<Arc<VersionStats>>,
}

impl VersionStats {
    pub fn new(instances: usize) -> Self {
        let shards = (0..=instances).map(|_| Mutex::default()).collect();
        Self { shards, warmup: Mutex::default(), before: None }
    }

    /// These counters for a version that is loaded anew, now with so many instances: the same ones, or, since each
    /// instance has a shard of its own, larger ones that go on from these.
    pub fn continued(self: &Arc<Self>, instances: usize) -> Arc<Self> {
        if instances < self.shards.len() {
            return Arc::clone(self);
        }
        Arc::new(Self { before: Some(Arc::clone(self)), ..Self::new(instances) })
    }

    /// A request of `batch` rows was answered at `end_ns`.
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

    /// A batch of `rows` rows goes to instance `shard`; `closed` is a number of [`CLOSE_REASONS`].
    pub fn batch(&self, shard: usize, closed: usize, rows: u32) {
        let mut counters = self.shard(shard + 1);
        counters.batches_closed[closed] += 1;
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

    /// A request ended whose caller had gone away, before or during its execution.
    pub fn cancelled(&self, executing: bool) {
        self.shard(0).cancelled[usize::from(executing)] += 1;
    }

    /// An instance has run all its warm-up samples.
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

    pub fn snapshot(&self) -> Counters {
        let mut sum = self.before.as_ref().map(|before| before.snapshot()).unwrap_or_default();
        for shard in &self.shards {
            sum.merge(&shard.lock());
        }
        sum
    }

    fn shard(&self, i: usize) -> crate::sync::MutexGuard<'_, Counters> {
        let i = i.min(self.shards.len() - 1);
        self.shards[i].lock()
    }
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
