//! One execution of a batch: its times, and how many of an instance's executions are outstanding.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One execution of a batch, shared by its requests.
pub struct BatchExecution {
    /// The instance's shard of the counters.
    pub shard: usize,
    /// Sum of the requests' batch sizes.
    pub rows: u32,
    /// Rows that the backend adds to them.
    padding: u32,
    pub start_ns: u64,
    /// When inputs were ready and outputs began, as the backend reports; 0 until then.
    compute_ns: AtomicU64,
    output_ns: AtomicU64,
    /// Only the first success of a batch counts the execution.
    pub(super) credited: AtomicBool,
    /// Requests without final response.
    pending: AtomicU32,
    outstanding: Arc<OutstandingExecutions>,
    /// What the execution holds until its end.
    hold: Option<Arc<dyn ExecutionHold>>,
    /// Parts by the position of their first request, if the backend executes the batch in parts.
    parts: Mutex<BTreeMap<u32, Arc<BatchExecution>>>,
}

/// What an execution holds until its last request has its final response.
pub trait ExecutionHold: Send + Sync {
    fn finished(&self);
}

/// Called with the reason when the backend reports that the instance is broken.
type BrokenObserver = Box<dyn Fn(&str) + Send + Sync>;

/// Executions of one instance that have outstanding requests.
#[derive(Default)]
pub struct OutstandingExecutions {
    state: Mutex<OutstandingState>,
    changed: Condvar,
    on_broken: OnceLock<BrokenObserver>,
}

#[derive(Default)]
struct OutstandingState {
    executions: usize,
    /// The instance's thread waits. Otherwise it is not notified, which saves the system call.
    waiting: bool,
}

impl OutstandingExecutions {
    fn begin(&self) {
        self.lock().executions += 1;
    }

    fn end(&self) {
        let mut state = self.lock();
        state.executions -= 1;
        let notify = state.waiting;
        drop(state);
        if notify {
            self.changed.notify_all();
        }
    }

    /// Calls `report` with the reason when the backend reports that the instance is broken. Set
    /// once.
    pub fn on_broken(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.on_broken.set(Box::new(report));
    }

    fn lock(&self) -> MutexGuard<'_, OutstandingState> {
        self.state.lock()
    }

    /// At most `max` executions are outstanding.
    pub fn at_most(&self, max: usize) -> bool {
        self.lock().executions <= max
    }

    /// Waits until at most `max` executions are outstanding. False if `limit` passed before.
    pub fn wait_at_most(&self, max: usize, limit: Option<Duration>) -> bool {
        let deadline = limit.map(|l| Instant::now() + l);
        let mut state = self.lock();
        let mut in_time = true;
        while state.executions > max && in_time {
            state.waiting = true;
            match deadline {
                None => self.changed.wait(&mut state),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    in_time = !left.is_zero();
                    self.changed.wait_for(&mut state, left);
                }
            }
        }
        state.waiting = false;
        state.executions <= max
    }
}

impl BatchExecution {
    /// An execution of `requests` requests with `rows` rows in total, begun at `start_ns` by the
    /// instance with this `shard`.
    pub fn new(
        shard: usize,
        requests: u32,
        rows: u32,
        start_ns: u64,
        outstanding: &Arc<OutstandingExecutions>,
    ) -> Self {
        outstanding.begin();
        Self::with_pending(shard, requests, rows, start_ns, outstanding)
    }

    fn with_pending(
        shard: usize,
        pending: u32,
        rows: u32,
        start_ns: u64,
        outstanding: &Arc<OutstandingExecutions>,
    ) -> Self {
        Self {
            pending: AtomicU32::new(pending),
            outstanding: Arc::clone(outstanding),
            shard,
            rows,
            padding: 0,
            start_ns,
            compute_ns: AtomicU64::new(0),
            output_ns: AtomicU64::new(0),
            credited: AtomicBool::new(false),
            hold: None,
            parts: Mutex::default(),
        }
    }

    /// The backend adds this many rows.
    pub fn with_padding(self, padding: u32) -> Self {
        Self { padding, ..self }
    }

    pub(super) fn padding(&self) -> u32 {
        self.padding
    }

    /// The same, holding `hold` until its end.
    pub fn holding(self, hold: Option<Arc<dyn ExecutionHold>>) -> Self {
        Self { hold, ..self }
    }

    /// The part of the batch that begins with the request at `first`: an execution of its own for
    /// the statistics. Its requests stay outstanding in this one. `rows` and `start_ns` are those
    /// of the first call.
    pub fn part(&self, first: u32, rows: u32, start_ns: u64) -> Arc<Self> {
        let part = || Self::with_pending(self.shard, 0, rows, start_ns, &self.outstanding);
        Arc::clone(self.parts.lock().entry(first).or_insert_with(|| Arc::new(part())))
    }

    /// The part that begins with the request at `first`.
    pub fn part_at(&self, first: u32) -> Option<Arc<Self>> {
        self.parts.lock().get(&first).cloned()
    }

    /// The next execution of an instance, in the memory of `last` if that is not referenced any
    /// more.
    pub fn next(last: &mut Option<Arc<Self>>, new: impl FnOnce() -> Self) -> Arc<Self> {
        let new = new();
        if let Some(last) = last {
            match Arc::get_mut(last) {
                Some(unused) => *unused = new,
                None => *last = Arc::new(new),
            }
            return Arc::clone(last);
        }
        Arc::clone(last.insert(Arc::new(new)))
    }

    /// A request got its final response.
    pub fn request_finished(&self) {
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            if let Some(hold) = &self.hold {
                hold.finished();
            }
            self.outstanding.end();
        }
    }

    /// The backend reports that the instance is broken.
    pub fn report_broken(&self, reason: &str) {
        if let Some(report) = self.outstanding.on_broken.get() {
            report(reason);
        }
    }

    /// Times as the backend measured them; zeros and times out of order are ignored when read.
    pub fn note_times(&self, compute_ns: u64, output_ns: u64) {
        self.compute_ns.store(compute_ns, Ordering::Relaxed);
        self.output_ns.store(output_ns, Ordering::Relaxed);
    }

    /// The reported times of compute and output, 0 = none.
    pub fn noted_times(&self) -> [u64; 2] {
        [&self.compute_ns, &self.output_ns].map(|t| t.load(Ordering::Relaxed))
    }

    /// Durations of input, inference and output phases when the execution ends at `end_ns`.
    pub fn phases(&self, end_ns: u64) -> [u64; 3] {
        let within = |t: u64, from: u64| if t < from || t > end_ns { None } else { Some(t) };
        let compute =
            within(self.compute_ns.load(Ordering::Relaxed), self.start_ns).unwrap_or(self.start_ns);
        let output = within(self.output_ns.load(Ordering::Relaxed), compute).unwrap_or(end_ns);
        [compute - self.start_ns, output - compute, end_ns.saturating_sub(output)]
    }
}
