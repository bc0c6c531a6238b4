//! Model tests of `task.rs`: its source, compiled with loom's atomics and locks and a runtime of one
//! thread, in the orders of a network thread and threads of instances that wake and poll one task.

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};
use task::{Task, complete_inline};
use task_base::{Handle, InlineCompletion, Mutex};

#[path = "task.rs"]
#[allow(clippy::duplicate_mod, dead_code)] // compiled twice on purpose, used in part
mod task;

/// Doubles of what `task.rs` runs on.
mod task_base {
    /// Loom's macro takes no `const` block.
    macro_rules! local {
        ($(#[$attribute:meta])* static $name:ident: $type:ty = const { $value:expr };) => {
            loom::thread_local! { $(#[$attribute])* static $name: $type = $value }
        };
    }
    use super::task::BoxFuture;
    pub(super) use local as thread_local;
    pub use loom::sync::atomic::AtomicBool;
    use loom::sync::{Condvar, MutexGuard};
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;
    use std::future::Future;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::{self, SeqCst};
    use std::task::{Context, Wake, Waker};

    /// Loom gives no place to a store of another thread between one that an exchange has read and
    /// the exchange; where stores are exchanges, too, all have one order.
    pub struct AtomicU8(loom::sync::atomic::AtomicU8);

    impl AtomicU8 {
        pub fn new(value: u8) -> Self {
            Self(value.into())
        }

        pub fn load(&self, ordering: Ordering) -> u8 {
            self.0.load(ordering)
        }

        pub fn store(&self, value: u8, ordering: Ordering) {
            self.0.swap(value, ordering);
        }

        pub fn compare_exchange(
            &self,
            from: u8,
            to: u8,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u8, u8> {
            self.0.compare_exchange(from, to, success, failure)
        }
    }

    /// As of parking_lot: without poisoning.
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    loom::thread_local! {
        static GRANTED: Cell<bool> = Cell::new(false);
        static CURRENT: RefCell<Option<Handle>> = RefCell::new(None);
    }

    pub struct InlineCompletion;

    impl InlineCompletion {
        pub fn grant() {
            GRANTED.with(|granted| granted.set(true));
        }

        pub fn take() -> bool {
            GRANTED.with(|granted| granted.replace(false))
        }
    }

    /// A runtime whose thread is the one that calls [`Handle::run`].
    #[derive(Clone)]
    pub struct Handle(Arc<Runtime>);

    struct Runtime {
        woken: Mutex<VecDeque<Arc<RuntimeTask>>>,
        changed: Condvar,
    }

    struct RuntimeTask {
        future: Mutex<Option<BoxFuture>>,
        is_queued: AtomicBool,
        runtime: Arc<Runtime>,
    }

    impl Handle {
        pub fn new() -> Self {
            let woken = Mutex::new(VecDeque::new());
            Self(Arc::new(Runtime { woken, changed: Condvar::new() }))
        }

        /// Calls `f` inside the runtime.
        pub fn enter(&self, f: impl FnOnce()) {
            CURRENT.with(|current| current.replace(Some(self.clone())));
            f();
            CURRENT.with(|current| current.replace(None));
        }

        pub fn current() -> Self {
            CURRENT.with(|current| current.borrow().clone()).unwrap()
        }

        pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
            let task = RuntimeTask {
                future: Mutex::new(Some(Box::pin(future))),
                is_queued: AtomicBool::new(false),
                runtime: Arc::clone(&self.0),
            };
            Arc::new(task).wake();
        }

        /// Polls a future that is never pending.
        pub fn block_on(&self, future: impl Future<Output = ()>) {
            let mut future = Box::pin(future);
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }

        /// Polls tasks until one has ended. Loom fails if none is ever woken.
        pub fn run(&self) {
            loop {
                let task = self.next();
                task.is_queued.store(false, SeqCst);
                let mut future = task.future.lock();
                let waker = Waker::from(Arc::clone(&task));
                let Some(pending) = future.as_mut() else { continue };
                if pending.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    *future = None;
                    return;
                }
            }
        }

        /// Drops the tasks that are woken, as a runtime that shuts down.
        pub fn shut_down(&self) {
            let task = self.next();
            let future = task.future.lock().take();
            drop(future);
        }

        fn next(&self) -> Arc<RuntimeTask> {
            let mut woken = self.0.woken.lock();
            loop {
                match woken.pop_front() {
                    Some(task) => return task,
                    None => woken = self.0.changed.wait(woken).unwrap(),
                }
            }
        }
    }

    impl Wake for RuntimeTask {
        fn wake(self: Arc<Self>) {
            if !self.is_queued.swap(true, SeqCst) {
                let runtime = Arc::clone(&self.runtime);
                runtime.woken.lock().push_back(self);
                runtime.changed.notify_one();
            }
        }
    }
}

/// A channel of one receiver, which has the responses of a call.
#[derive(Default)]
struct Responses {
    arrived: usize,
    waker: Option<Waker>,
}

type Shared = Arc<Mutex<Responses>>;

/// Receives `expected` responses, and counts those that it has seen.
fn receives(
    responses: &Shared,
    expected: usize,
    seen: &Arc<AtomicUsize>,
) -> impl Future<Output = ()> + Send + 'static {
    let (responses, seen) = (Arc::clone(responses), Arc::clone(seen));
    poll_fn(move |cx| {
        let mut responses = responses.lock();
        seen.store(responses.arrived, Ordering::SeqCst);
        if responses.arrived == expected {
            return Poll::Ready(());
        }
        responses.waker = Some(cx.waker().clone());
        Poll::Pending
    })
}

/// A thread of an instance that sends one response.
fn send(responses: &Shared, inline: bool) -> thread::JoinHandle<()> {
    let responses = Arc::clone(responses);
    thread::spawn(move || {
        if inline {
            InlineCompletion::grant();
        }
        let waker = {
            let mut responses = responses.lock();
            responses.arrived += 1;
            // Not taken: each response wakes the task, also one that it has seen.
            responses.waker.clone()
        };
        if let Some(waker) = waker {
            complete_inline(0, || waker.wake());
        }
    })
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // All orders with so many interrupted threads: those of all would take hours.
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Whoever polls the task, it sees every response, and its end reaches the runtime.
#[test]
fn no_order_of_polls_and_wakes_loses_a_response() {
    for inline in [[true, true], [true, false]] {
        check(3, move || {
            let (runtime, responses) =
                (Handle::new(), Shared::new(Mutex::new(Responses::default())));
            let seen = Arc::new(AtomicUsize::new(0));
            runtime.enter(|| Task::spawn(receives(&responses, inline.len(), &seen)));
            let senders = inline.map(|inline| send(&responses, inline));
            runtime.run();
            senders.into_iter().for_each(|sender| sender.join().unwrap());
            assert_eq!(seen.load(Ordering::SeqCst), inline.len());
        });
    }
}

/// The same for a task that an instance polls before the runtime knows it.
#[test]
fn task_that_was_begun_elsewhere_is_finished() {
    check(3, || {
        let (runtime, responses) = (Handle::new(), Shared::new(Mutex::new(Responses::default())));
        let seen = Arc::new(AtomicUsize::new(0));
        runtime.enter(|| Task::poll_now(Box::pin(receives(&responses, 2, &seen))));
        let senders = [true, false].map(|inline| send(&responses, inline));
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        // One of the two may have finished it inline; otherwise the runtime does.
        if seen.load(Ordering::SeqCst) < 2 {
            runtime.run();
        }
        assert_eq!(seen.load(Ordering::SeqCst), 2);
    });
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A runtime that shuts down while an instance polls the task: the future is dropped, once.
#[test]
fn future_is_dropped_once_when_the_runtime_ends() {
    check(3, || {
        let (runtime, responses) = (Handle::new(), Shared::new(Mutex::new(Responses::default())));
        let (seen, drops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counted = Counted(Arc::clone(&drops));
        let future = receives(&responses, 2, &seen);
        runtime.enter(|| {
            Task::spawn(async move {
                let _counted = counted;
                future.await;
            });
        });
        let sender = send(&responses, true);
        runtime.shut_down();
        sender.join().unwrap();
        // The waker in `responses` holds the task, not its future.
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}
