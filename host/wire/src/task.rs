//! Tasks of connections and calls. The thread of an instance may poll them too: inline completion.
//!
//! A response to the only request of an instance wakes the task of its call. Where the instance has
//! granted inline completion (`request/src/completion.rs`), its thread polls that task instead of
//! waking a network thread, and then the task of the connection, which writes the response. A task
//! that another thread is polling is left to that thread.
//!
//! A task that wakes itself is polled again without going through the runtime, up to a limit:
//! hyper's connection and the body of its request are one task and wake each other. Left to the
//! runtime, each request would put the task into a run queue and wake another network thread to
//! steal it.

use super::task_base::{AtomicBool, AtomicU8, Handle, InlineCompletion, Mutex, thread_local};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};

/// Polls in a row, after which other tasks get their turn.
pub const REPOLL_LIMIT: usize = 4;
/// Tasks that one inline completion polls: a call, its connection, and what these wake. Others are
/// woken.
const INLINE_LIMIT: usize = 4;
/// A larger response is sent by a network thread: copying it takes longer than waking one, and the
/// instance may get the next request meanwhile.
pub const INLINE_BYTES: usize = 64 << 10;

pub type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// No thread polls the task.
const IDLE: u8 = 0;
/// A thread polls the task.
const POLLING: u8 = 1;
/// The same, and the task was woken meanwhile.
const WOKEN: u8 = 2;
/// The future has ended.
const ENDED: u8 = 3;

/// The task of a connection or a call, polled by the runtime or by an instance's thread.
pub struct Task {
    state: AtomicU8,
    /// Locked by the thread that has set `POLLING`, so without contention. `None` once it has
    /// ended.
    future: Mutex<Option<BoxFuture>>,
    runtime: Handle,
    /// The runtime has a task that polls this one. It is spawned when it is first needed.
    spawned: AtomicBool,
    /// Wakes the runtime's task. `None` until it was polled.
    in_runtime: Mutex<Option<Waker>>,
}

impl Task {
    /// Called inside the runtime.
    fn new(future: BoxFuture) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(IDLE),
            future: Mutex::new(Some(future)),
            runtime: Handle::current(),
            spawned: AtomicBool::new(false),
            in_runtime: Mutex::new(None),
        })
    }

    /// Runs `future` as a task of the runtime.
    pub fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        Self::new(Box::pin(future)).wake();
    }

    /// Polls `future` on this thread, and runs it as a task if it is pending then.
    pub fn poll_now(future: BoxFuture) {
        Self::new(future).poll();
    }

    /// Polls unless another thread does, which then polls once more.
    fn poll(self: &Arc<Self>) {
        match self.state.compare_exchange(IDLE, POLLING, SeqCst, SeqCst) {
            Ok(_) => {}
            // Or the state has changed to `IDLE` and this is a wake after that poll.
            Err(POLLING)
                if self.state.compare_exchange(POLLING, WOKEN, SeqCst, SeqCst).is_err() =>
            {
                return self.wake_by_ref();
            }
            Err(_) => return,
        }
        let waker = Waker::from(Arc::clone(self));
        for _ in 0..REPOLL_LIMIT {
            if self.poll_future(&mut Context::from_waker(&waker)).is_ready() {
                self.state.store(ENDED, SeqCst);
                return self.wake_in_runtime();
            }
            if self.state.compare_exchange(POLLING, IDLE, SeqCst, SeqCst).is_ok() {
                return;
            }
            self.state.store(POLLING, SeqCst);
        }
        self.state.store(IDLE, SeqCst);
        self.wake_runtime();
    }

    /// A panic ends the task, as it ends one of the runtime; the panic hook has reported it.
    fn poll_future(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut future = self.future.lock();
        let Some(pending) = future.as_mut() else { return Poll::Ready(()) };
        let polled = catch_unwind(AssertUnwindSafe(|| pending.as_mut().poll(cx)));
        if polled.as_ref().is_ok_and(Poll::is_pending) {
            return Poll::Pending;
        }
        let ended = future.take();
        drop(future);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(ended)));
        Poll::Ready(())
    }

    /// Has the task polled by the runtime.
    fn wake_runtime(self: &Arc<Self>) {
        if self.spawned.load(SeqCst) || self.spawned.swap(true, SeqCst) {
            return self.wake_in_runtime();
        }
        let task = TaskDriver(Arc::clone(self));
        self.runtime.spawn(poll_fn(move |cx| task.poll(cx)));
    }

    fn wake_in_runtime(&self) {
        let waker = self.in_runtime.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        loop {
            match self.state.compare_exchange(POLLING, WOKEN, SeqCst, SeqCst) {
                Err(IDLE) => break,
                Ok(_) | Err(WOKEN | ENDED) => return,
                Err(_) => {}
            }
        }
        let inline = TURN.with(|turn| match &mut *turn.borrow_mut() {
            Some(tasks) if tasks.len() < INLINE_LIMIT => {
                tasks.push(Arc::clone(self));
                true
            }
            _ => false,
        });
        if !inline {
            self.wake_runtime();
        }
    }
}

/// The part of a [`Task`] that belongs to the runtime, which drops it when it shuts down.
struct TaskDriver(Arc<Task>);

impl TaskDriver {
    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut known = self.0.in_runtime.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *known = Some(cx.waker().clone());
        }
        drop(known);
        self.0.poll();
        if self.0.state.load(SeqCst) == ENDED { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for TaskDriver {
    fn drop(&mut self) {
        self.0.state.store(ENDED, SeqCst);
        let future = self.0.future.lock().take();
        drop(future);
    }
}

thread_local! {
    /// While this thread completes a request inline: the tasks that it has woken, in order.
    static TURN: RefCell<Option<SmallVec<[Arc<Task>; INLINE_LIMIT]>>> = const { RefCell::new(None) };
}

/// Calls `wake`, which wakes the task of a call because a response of this many bytes is there. If
/// this thread has the right to inline completion it polls that task, and what it wakes in turn. To
/// be called without locks.
pub fn complete_inline(bytes: usize, wake: impl FnOnce()) {
    if bytes > INLINE_BYTES || !InlineCompletion::take() {
        return wake();
    }
    TURN.with(|turn| turn.replace(Some(SmallVec::new())));
    wake();
    let mut next = 0;
    while let Some(task) = TURN.with(|turn| turn.borrow().as_ref()?.get(next).cloned()) {
        // For timers and tasks that the future starts, and so that it reads and writes no more than
        // in one turn of the runtime.
        task.runtime.block_on(async { task.poll() });
        next += 1;
    }
    TURN.with(|turn| turn.replace(None));
}
