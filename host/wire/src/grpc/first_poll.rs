//! Polls the HTTP/2 streams that arrived in one read for the first time in one task; only streams
//! that are then pending get tasks of their own. A request of 64 bytes beside 15 others then takes
//! 10 µs of CPU instead of 24, and 0.2 system calls instead of 2.4 (benches/history/2026-11.md, "Calls
//! that arrive together"; the row `v2-grpc identity 64 c16 own`).
//!
//! A request that has arrived completely and is executed inline needs no task and no other thread,
//! and the responses to all requests of one read are sent in one write. What the thread has not
//! handed over when a model is unexpectedly slow is rescued: the inline watchdog calls
//! [`FirstPolls::rescue`], which gives the streams that wait behind the slow one to another thread
//! and wakes the connection to send the responses that are ready. Without it they would wait, since
//! tokio lets no other thread take the task that was woken last (promise 2.7 of SPECIFICATION.md).

use crate::postponed_runs::{self, ThreadRuns};
use crate::task::{BoxFuture, Task};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use tokio::runtime::Handle;
use trtserver_base::clock::now_ns;

type StreamFuture = BoxFuture;

/// Many streams whose first poll takes long would keep their thread from its sockets: it polls them
/// after this time.
const MAX_TURN_NS: u64 = 250_000;

/// The streams that hyper has spawned on one connection and that have no task of their own.
#[derive(Clone, Default)]
pub struct NewStreams(Arc<FirstPollState>);

#[derive(Default)]
struct FirstPollState {
    streams: Mutex<WaitingStreams>,
    /// The connection's task.
    task: Mutex<Option<Waker>>,
    /// The connection was woken by a stream that is being polled first.
    woken: AtomicBool,
}

#[derive(Default)]
struct WaitingStreams {
    /// In the order of arrival.
    new: VecDeque<StreamFuture>,
    /// Polled once, without a waker.
    pending: VecDeque<StreamFuture>,
    /// Tasks that execute postponed runs at the end of their thread's turn and poll the pending
    /// streams afterwards.
    postponing: usize,
}

impl<F> hyper::rt::Executor<F> for NewStreams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.streams.lock().new.push_back(Box::pin(stream));
    }
}

/// A connection that spawns its new streams after each poll.
pub struct FirstPollConnection<C> {
    connection: C,
    new_streams: NewStreams,
    waker: Waker,
}

impl<C: Future + Unpin> FirstPollConnection<C> {
    /// `new_streams` is the executor of `connection`.
    pub fn new(connection: C, new_streams: NewStreams) -> Self {
        let waker = Waker::from(Arc::clone(&new_streams.0));
        Self { connection, new_streams, waker }
    }
}

impl<C: Future + Unpin> Future for FirstPollConnection<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let this = &mut *self;
        let shared = &this.new_streams.0;
        shared.set_task(cx.waker());
        let polled = Pin::new(&mut this.connection).poll(&mut Context::from_waker(&this.waker));
        if !shared.streams.lock().new.is_empty() {
            let shared = Arc::clone(shared);
            tokio::spawn(shared.poll_new());
        }
        polled
    }
}

impl FirstPollState {
    fn set_task(&self, task: &Waker) {
        let mut known = self.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }

    /// Polls the new streams until none is left. Several threads may do so at once.
    async fn poll_new(self: Arc<Self>) {
        loop {
            let left = self.poll_some();
            while let Some(runs) = postponed_runs::take_collected() {
                let waiting = WaitingPoll::new(&self);
                // The runtime polls sockets and other tasks before it resumes this one.
                tokio::task::yield_now().await;
                drop(waiting);
                self.execute_postponed(&runs);
            }
            if !left {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Polls new streams for about [`MAX_TURN_NS`]. True if some are left.
    fn poll_some(self: &Arc<Self>) -> bool {
        let _registered = PollRegistration::new(Arc::clone(self));
        let mut end_ns = None;
        let left = loop {
            let Some(stream) = self.streams.lock().new.pop_front() else { break false };
            self.poll_first(stream);
            if self.streams.lock().new.is_empty() {
                break false;
            }
            let now = now_ns();
            if now > *end_ns.get_or_insert(now + MAX_TURN_NS) {
                break true;
            }
        };
        if !postponed_runs::has_collected() {
            self.spawn_pending();
        }
        left
    }

    /// Polls a stream that has no task. If it is pending, it is one of the pending streams now.
    fn poll_first(&self, mut stream: StreamFuture) {
        let mut no_waker = Context::from_waker(Waker::noop());
        // A panic ends this stream only, as it would in a task of its own.
        let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut no_waker)));
        if let Ok(Poll::Pending) = polled {
            self.streams.lock().pending.push_back(stream);
        }
    }

    /// Executes what the pending streams wait for, and polls them once more: most are then done and
    /// need no task.
    fn execute_postponed(self: &Arc<Self>, runs: &ThreadRuns) {
        let _registered = PollRegistration::new(Arc::clone(self));
        // A panic ends this run only; the queue of its instance has noticed it.
        let _ = catch_unwind(AssertUnwindSafe(|| runs.execute()));
        let pending = self.streams.lock().pending.len();
        for _ in 0..pending {
            let Some(stream) = self.streams.lock().pending.pop_front() else { break };
            self.poll_first(stream);
        }
        self.spawn_pending();
    }

    /// Makes tasks of the pending streams, unless they wait for a postponed run.
    fn spawn_pending(&self) {
        let mut streams = self.streams.lock();
        if streams.postponing > 0 {
            return;
        }
        let pending = std::mem::take(&mut streams.pending);
        drop(streams);
        pending.into_iter().for_each(Task::poll_now);
    }

    /// Wakes the connection if that was put off.
    fn pass_on_wake(&self) {
        if self.woken.swap(false, Ordering::AcqRel) {
            self.wake_task();
        }
    }

    fn wake_task(&self) {
        let task = self.task.lock().clone();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Hands everything to other threads.
    fn rescue(self: &Arc<Self>, runtime: &Handle) {
        self.pass_on_wake();
        let mut streams = self.streams.lock();
        let pending = std::mem::take(&mut streams.pending);
        let any_new = !streams.new.is_empty();
        drop(streams);
        for stream in pending {
            runtime.spawn(stream);
        }
        if any_new {
            let shared = Arc::clone(self);
            runtime.spawn(shared.poll_new());
        }
    }
}

impl Wake for FirstPollState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// The streams of one read wake the connection once, after the last of them.
    fn wake_by_ref(self: &Arc<Self>) {
        if POLLED.get() == Arc::as_ptr(self) {
            self.woken.store(true, Ordering::Release);
        } else {
            self.wake_task();
        }
    }
}

/// This thread polls streams that have no task: the runs that they postpone are executed by the task
/// that polls them.
pub fn is_polling() -> bool {
    !POLLED.get().is_null()
}

thread_local! {
    /// What this thread is polling.
    static POLLED: Cell<*const FirstPollState> = const { Cell::new(ptr::null()) };
    /// This thread's entry in [`FirstPolls`].
    static ENTRY: OnceLock<Arc<ThreadEntry>> = const { OnceLock::new() };
}

/// What each network thread is polling first.
#[derive(Default)]
pub struct FirstPolls(Mutex<Vec<Weak<ThreadEntry>>>);

/// On a cache line of its own, since it is written twice for each read.
#[derive(Default)]
#[repr(align(128))]
struct ThreadEntry {
    polled: Mutex<Option<Arc<FirstPollState>>>,
    /// States whose streams the thread polls at the end of its turn.
    waiting: Mutex<Vec<Arc<FirstPollState>>>,
}

impl FirstPolls {
    /// Adds this thread.
    pub fn register_thread(&self) {
        let entry = ENTRY.with(|entry| Arc::downgrade(entry.get_or_init(Arc::default)));
        let mut entries = self.0.lock();
        entries.retain(|entry| entry.strong_count() > 0);
        entries.push(entry);
    }

    /// Hands the streams and wakes that any thread has put off to other threads. Called when a
    /// thread is held up.
    pub fn rescue(&self, runtime: &Handle) {
        for entry in self.0.lock().iter().filter_map(Weak::upgrade) {
            let mut held_up = entry.waiting.lock().clone();
            held_up.extend(entry.polled.lock().clone());
            held_up.iter().for_each(|state| state.rescue(runtime));
        }
    }
}

/// The time in which this thread polls the streams of one connection first.
struct PollRegistration(Arc<FirstPollState>);

impl PollRegistration {
    fn new(shared: Arc<FirstPollState>) -> Self {
        POLLED.set(Arc::as_ptr(&shared));
        Self::set_entry(Some(Arc::clone(&shared)));
        Self(shared)
    }

    fn set_entry(polled: Option<Arc<FirstPollState>>) {
        ENTRY.with(|entry| {
            if let Some(entry) = entry.get() {
                *entry.polled.lock() = polled;
            }
        });
    }
}

impl Drop for PollRegistration {
    fn drop(&mut self) {
        Self::set_entry(None);
        POLLED.set(ptr::null());
        self.0.pass_on_wake();
    }
}

/// The time in which pending streams wait for the end of this thread's turn.
struct WaitingPoll(Arc<FirstPollState>, Option<Arc<ThreadEntry>>);

impl WaitingPoll {
    fn new(shared: &Arc<FirstPollState>) -> Self {
        let entry = ENTRY.with(|entry| entry.get().cloned());
        if let Some(entry) = &entry {
            entry.waiting.lock().push(Arc::clone(shared));
        }
        shared.streams.lock().postponing += 1;
        Self(Arc::clone(shared), entry)
    }
}

impl Drop for WaitingPoll {
    fn drop(&mut self) {
        self.0.streams.lock().postponing -= 1;
        if let Some(entry) = &self.1 {
            let mut waiting = entry.waiting.lock();
            if let Some(at) = waiting.iter().position(|state| Arc::ptr_eq(state, &self.0)) {
                waiting.swap_remove(at);
            }
        }
    }
}

#[cfg(test)]
#[path = "first_poll_tests.rs"]
mod tests;
