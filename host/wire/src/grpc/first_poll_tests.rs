//! Unit tests of `first_poll.rs`.

use super::*;
use hyper::rt::Executor;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

#[tokio::test]
async fn streams_are_polled_together_then_pend_alone() {
    let done = Arc::new(AtomicUsize::new(0));
    let (go, wait) = oneshot::channel::<()>();
    let (sender, receiver) = oneshot::channel();
    let count = || -> StreamFuture {
        let done = Arc::clone(&done);
        Box::pin(async move {
            done.fetch_add(1, Ordering::SeqCst);
        })
    };
    let waits: StreamFuture = Box::pin(async move {
        wait.await.unwrap();
        sender.send(()).unwrap();
    });
    let panics: StreamFuture = Box::pin(async { panic!("a test of what is caught") });
    let mut connection = opening(vec![count(), panics, waits, count(), count()]);
    let once = poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_pending()));
    assert!(once.await);
    // The connection was polled before any of its streams.
    assert_eq!(done.load(Ordering::SeqCst), 0);
    // Reporting the panic may take more than one turn.
    while done.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    go.send(()).unwrap();
    receiver.await.unwrap();
}

/// A connection that opens these streams when it is polled first.
fn opening(streams: Vec<StreamFuture>) -> FirstPollConnection<impl Future<Output = ()> + Unpin> {
    let new_streams = NewStreams::default();
    let executor = new_streams.clone();
    let mut read = Some(streams);
    let connection = poll_fn(move |_| {
        read.take().into_iter().flatten().for_each(|stream| executor.execute(stream));
        Poll::Pending
    });
    FirstPollConnection::new(Box::pin(connection), new_streams)
}

#[tokio::test]
async fn slow_streams_are_polled_in_turns_with_other_tasks() {
    let done = Arc::new(AtomicUsize::new(0));
    let slow = |_| -> StreamFuture {
        let done = Arc::clone(&done);
        Box::pin(async move {
            std::thread::sleep(Duration::from_nanos(MAX_TURN_NS));
            done.fetch_add(1, Ordering::SeqCst);
        })
    };
    let mut connection = opening((0..20).map(slow).collect());
    let once = poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_pending()));
    assert!(once.await);
    tokio::task::yield_now().await;
    let first = done.load(Ordering::SeqCst);
    assert!((1..=3).contains(&first), "{first} streams were polled in one turn");
    while done.load(Ordering::SeqCst) < 20 {
        tokio::task::yield_now().await;
    }
}

/// The first stream holds its thread until the others are done; the connection, which the second
/// one wakes, is polled too.
#[test]
fn rescue_hands_streams_and_wakes_to_another_thread() {
    let first_polls = Arc::new(FirstPolls::default());
    let registered = Arc::clone(&first_polls);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_start(move || registered.register_thread())
        .build()
        .unwrap();
    let (done, all_done) = std::sync::mpsc::channel();
    let (held, is_held) = std::sync::mpsc::channel();
    let new_streams = NewStreams::default();
    let (streams, waker) = (new_streams.clone(), Waker::from(Arc::clone(&new_streams.0)));
    let mut polls = 0;
    let connection = poll_fn(move |_| {
        polls += 1;
        if polls > 1 {
            done.send("connection").unwrap();
            return Poll::Ready(());
        }
        let waker = waker.clone();
        streams.execute(async move { waker.wake() });
        let once = done.clone();
        let pending = async move {
            tokio::task::yield_now().await;
            once.send("pending").unwrap();
        };
        streams.execute(pending);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let held = held.clone();
        streams.execute(async move {
            held.send(release).unwrap();
            let _ = released.recv();
        });
        let once = done.clone();
        streams.execute(async move { once.send("new").unwrap() });
        Poll::Pending
    });
    runtime.spawn(FirstPollConnection::new(Box::pin(connection), new_streams));
    let release = is_held.recv().unwrap();
    assert!(all_done.try_recv().is_err());
    first_polls.rescue(runtime.handle());
    let mut got = [(); 3].map(|()| all_done.recv_timeout(Duration::from_secs(10)).unwrap());
    got.sort_unstable();
    assert_eq!(got, ["connection", "new", "pending"]);
    drop(release);
}
