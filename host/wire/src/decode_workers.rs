//! Decode workers: a few threads for decoding and encoding whose time grows with a client's data,
//! such as JSON and compression of megabytes. Network threads do such work only for small messages,
//! so that every connection is served.
//!
//! Jobs run in the order of their submission. The queue needs no limit of its own, because the data
//! of every job is drawn from the memory budget.

use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::OnceLock;
use std::thread;
use tokio::sync::oneshot;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::request_id::RequestId;

/// Network threads decode and encode up to this many bytes themselves.
pub const MAX_INLINE: usize = 64 << 10;
/// Bytes that a network thread may decompress in a millisecond, which takes it a fifth of that
/// time. The messages of a connection arrive together, so the limit of each is not enough.
const INLINE_PER_MS: u64 = 64 << 10;
/// Added to the workers' niceness: a network thread that wakes up is scheduled first.
const NICE: i32 = 10;

/// A result, or the work that leads to it.
pub enum ReadyOrDeferred<T> {
    Ready(T),
    /// Work that goes on on a worker. Its future is boxed, and made by functions that are not
    /// `async`: the future of an ordinary request, which is moved several times, has no space for
    /// it.
    Deferred(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T> ReadyOrDeferred<T> {
    pub fn defer(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self::Deferred(Box::pin(work))
    }
}

type DecodeJob = Box<dyn FnOnce() + Send>;

/// The queue of jobs that the decode workers take from.
struct DecodeWorkers {
    jobs: Mutex<VecDeque<DecodeJob>>,
    not_empty: Condvar,
}

/// Process-wide: futures of requests, which are moved several times, have no space for a reference.
static WORKERS: OnceLock<&'static DecodeWorkers> = OnceLock::new();

/// How many workers there are for `--decode-thread-count`.
pub fn worker_count(count: Option<usize>) -> usize {
    let default =
        || thread::available_parallelism().map_or(1, |n| n.get().saturating_sub(1).max(1));
    count.unwrap_or_else(default)
}

/// Starts the workers of this process; if `count` is not given, one per processor less one, which
/// is left to the network threads.
///
/// # Errors
/// The system starts no threads.
pub fn start_workers(count: Option<usize>) -> std::io::Result<()> {
    let workers: &'static DecodeWorkers = Box::leak(Box::new(DecodeWorkers {
        jobs: Mutex::new(VecDeque::new()),
        not_empty: Condvar::new(),
    }));
    for _ in 0..worker_count(count) {
        thread::Builder::new().name("decode".to_owned()).spawn(|| workers.work())?;
    }
    // Unit tests start them more than once: the first ones are used.
    let _ = WORKERS.set(workers);
    Ok(())
}

/// Runs `work` on a worker. If the returned future is dropped before `work` begins, it is not run.
///
/// # Errors
/// `work` panicked, or there are no workers.
pub async fn run_on_worker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    #[cfg(any(test, feature = "testing"))]
    if WORKERS.get().is_none() {
        let _ = start_workers(Some(2));
    }
    let failed = || Error::internal("decoding failed: the worker thread panicked");
    let (done, result) = oneshot::channel();
    let workers = WORKERS.get().ok_or_else(failed)?;
    let request = RequestId::current();
    workers.submit(Box::new(move || {
        let _entered = request.as_ref().map(|request| request.enter());
        if !done.is_closed() {
            let _ = done.send(work());
        }
    }));
    result.await.map_err(|_| failed())
}

/// As [`run_on_worker`], but runs `work` on this thread unless it is `heavy`.
///
/// # Errors
/// The errors of [`run_on_worker`].
pub async fn run_if<T: Send + 'static>(
    heavy: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if heavy { run_on_worker(work).await } else { Ok(work()) }
}

/// What a network thread has decompressed, paid off with time.
#[derive(Clone, Copy)]
struct InlineDebt {
    bytes: u64,
    at_ns: u64,
}

thread_local! {
    static INLINE_DEBT: Cell<InlineDebt> = const { Cell::new(InlineDebt { bytes: 0, at_ns: 0 }) };
}

impl InlineDebt {
    fn at(self, now_ns: u64) -> Self {
        let paid = u128::from(now_ns.saturating_sub(self.at_ns)) * u128::from(INLINE_PER_MS);
        let paid = u64::try_from(paid / 1_000_000).unwrap_or(u64::MAX);
        Self { bytes: self.bytes.saturating_sub(paid), at_ns: now_ns }
    }
}

/// This network thread may decompress another message of at most [`MAX_INLINE`] bytes.
/// [`spent_inline`] follows.
pub fn may_decode_inline() -> bool {
    INLINE_DEBT.get().at(now_ns()).bytes < MAX_INLINE as u64
}

/// This network thread has decompressed `bytes`.
pub fn spent_inline(bytes: usize) {
    let debt = INLINE_DEBT.get().at(now_ns());
    INLINE_DEBT.set(InlineDebt { bytes: debt.bytes.saturating_add(bytes as u64), ..debt });
}

impl DecodeWorkers {
    fn submit(&self, job: DecodeJob) {
        self.jobs.lock().push_back(job);
        self.not_empty.notify_one();
    }

    fn work(&self) {
        // Refused only if a limit forbids it; the worker then competes as an equal.
        let _ = rustix::process::nice(NICE);
        loop {
            let job = {
                let mut jobs = self.jobs.lock();
                loop {
                    match jobs.pop_front() {
                        Some(job) => break job,
                        None => self.not_empty.wait(&mut jobs),
                    }
                }
            };
            // A panic ends this job only; its future sees the closed channel.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }
}

#[cfg(test)]
#[path = "decode_workers_tests.rs"]
mod tests;
