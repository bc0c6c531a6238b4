//! Unit tests of `task.rs`. `task_model_tests.rs` has the orders of its threads.

use crate::task::{INLINE_BYTES, REPOLL_LIMIT, Task, complete_inline};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use trtserver_request::completion::InlineCompletion;

const TIMEOUT: Duration = Duration::from_secs(10);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A future that is polled until it was woken so often; the thread of each poll goes to `polls`.
fn counts(
    wakes: usize,
    polls: std::sync::mpsc::Sender<(std::thread::ThreadId, Waker)>,
) -> impl Future<Output = ()> + Send {
    let mut polled = 0;
    poll_fn(move |cx| {
        polled += 1;
        polls.send((std::thread::current().id(), cx.waker().clone())).unwrap();
        if polled > wakes { Poll::Ready(()) } else { Poll::Pending }
    })
}

#[test]
fn a_thread_with_the_right_polls_the_task_once() {
    let runtime = runtime();
    let (sender, polls) = channel();
    // Polled here first: a thread of the runtime might still be polling it below.
    runtime.block_on(async { Task::poll_now(Box::pin(counts(2, sender))) });
    let here = std::thread::current().id();
    let (_, waker) = polls.recv_timeout(TIMEOUT).unwrap();
    let granted = InlineCompletion::grant();
    complete_inline(0, || waker.wake_by_ref());
    assert_eq!(polls.try_recv().unwrap().0, here);
    // The right is used up.
    complete_inline(0, || waker.wake_by_ref());
    assert_ne!(polls.recv_timeout(TIMEOUT).unwrap().0, here);
    drop(granted);
    assert!(!InlineCompletion::take());
}

#[test]
fn tasks_are_left_to_the_runtime_without_the_right_and_for_large_responses() {
    let runtime = runtime();
    let (sender, polls) = channel();
    runtime.block_on(async { Task::spawn(counts(2, sender)) });
    let here = std::thread::current().id();
    let (_, waker) = polls.recv_timeout(TIMEOUT).unwrap();
    complete_inline(0, || waker.wake_by_ref());
    assert_ne!(polls.recv_timeout(TIMEOUT).unwrap().0, here);
    let _granted = InlineCompletion::grant();
    complete_inline(INLINE_BYTES + 1, || waker.wake_by_ref());
    assert_ne!(polls.recv_timeout(TIMEOUT).unwrap().0, here);
    // A large response does not use up the right.
    assert!(InlineCompletion::take());
}

/// The task of a call wakes that of its connection.
#[test]
fn a_task_that_is_woken_by_the_polled_one_is_polled_too() {
    let runtime = runtime();
    let here = std::thread::current().id();
    let (sender, connection) = channel();
    runtime.block_on(async { Task::poll_now(Box::pin(counts(1, sender))) });
    let (_, wakes_connection) = connection.recv_timeout(TIMEOUT).unwrap();
    let (sender, call) = channel();
    let mut counted = Box::pin(counts(1, sender));
    runtime.block_on(async {
        Task::poll_now(Box::pin(poll_fn(move |cx| {
            let polled = counted.as_mut().poll(cx);
            if polled.is_ready() {
                wakes_connection.wake_by_ref();
            }
            polled
        })));
    });
    let (_, waker) = call.recv_timeout(TIMEOUT).unwrap();
    let _granted = InlineCompletion::grant();
    complete_inline(0, || waker.wake());
    assert_eq!(call.try_recv().unwrap().0, here);
    assert_eq!(connection.try_recv().unwrap().0, here);
}

#[test]
fn a_task_that_wakes_itself_is_polled_at_once_up_to_the_limit() {
    let runtime = runtime();
    let (sender, polls) = channel();
    let mut polled = 0;
    runtime.block_on(async {
        Task::poll_now(Box::pin(poll_fn(move |cx| {
            polled += 1;
            sender.send(std::thread::current().id()).unwrap();
            cx.waker().wake_by_ref();
            if polled == REPOLL_LIMIT + 1 { Poll::Ready(()) } else { Poll::Pending }
        })));
    });
    let here = std::thread::current().id();
    let polls: Vec<_> = std::iter::from_fn(|| polls.recv_timeout(TIMEOUT).ok()).collect();
    let expected: Vec<bool> = (0..REPOLL_LIMIT).map(|_| true).chain([false]).collect();
    assert_eq!(polls.iter().map(|thread| *thread == here).collect::<Vec<_>>(), expected);
}

#[test]
fn a_panic_ends_the_task_only() {
    let runtime = runtime();
    let (sender, polls) = channel();
    runtime.block_on(async {
        Task::spawn(async move {
            counts(1, sender).await;
            panic!("a test of what is caught");
        });
    });
    let (_, waker) = polls.recv_timeout(TIMEOUT).unwrap();
    let _granted = InlineCompletion::grant();
    complete_inline(0, || waker.wake_by_ref());
    complete_inline(0, || waker.wake_by_ref());
    assert_eq!(polls.iter().count(), 1, "the future was dropped");
}

#[test]
fn the_future_is_dropped_with_the_runtime() {
    let runtime = runtime();
    let (sender, polls) = channel();
    runtime.block_on(async { Task::spawn(counts(1, sender)) });
    let (_, waker) = polls.recv_timeout(TIMEOUT).unwrap();
    drop(runtime);
    assert!(polls.recv_timeout(TIMEOUT).is_err());
    waker.wake();
}

/// Instances and the runtime wake and poll one task at once: no wake is lost.
#[test]
fn no_wake_is_lost_between_threads() {
    const MESSAGES: usize = 20_000;
    let runtime = runtime();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let received = Arc::new(AtomicUsize::new(0));
    let (done, is_done) = channel();
    let counter = Arc::clone(&received);
    runtime.block_on(async {
        Task::spawn(async move {
            while receiver.recv().await.is_some() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
            done.send(()).unwrap();
        });
    });
    let senders: Vec<_> = (0..3)
        .map(|thread| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for _ in 0..MESSAGES {
                    let _granted = (thread > 0).then(InlineCompletion::grant);
                    complete_inline(0, || sender.send(()).unwrap());
                }
            })
        })
        .collect();
    drop(sender);
    senders.into_iter().for_each(|thread| thread.join().unwrap());
    is_done.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(received.load(Ordering::SeqCst), 3 * MESSAGES);
}
