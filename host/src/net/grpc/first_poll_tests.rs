//! Unit tests of `first_poll.rs`.

use super::*;
use hyper::rt::Executor;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::oneshot;

#[tokio::test]
async fn streams_are_polled_together_then_pend_alone() {
    let done = Arc::new(AtomicUsize::new(0));
    let (go, wait) = oneshot::channel::<()>();
    let (sender, receiver) = oneshot::channel();
    let count = || -> Stream {
        let done = Arc::clone(&done);
        Box::pin(async move {
            done.fetch_add(1, Ordering::SeqCst);
        })
    };
    let waits: Stream = Box::pin(async move {
        wait.await.unwrap();
        sender.send(()).unwrap();
    });
    let panics: Stream = Box::pin(async { panic!("a test of what is caught") });
    let new_streams = NewStreams::default();
    let streams = new_streams.clone();
    let mut read = Some([count(), panics, waits, count(), count()]);
    let connection = poll_fn(move |_| -> Poll<()> {
        read.take().into_iter().flatten().for_each(|stream| streams.execute(stream));
        Poll::Pending
    });
    let mut connection = Connection::new(Box::pin(connection), new_streams);
    let once = poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_pending()));
    assert!(once.await);
    // The connection was polled before any of its streams.
    assert_eq!(done.load(Ordering::SeqCst), 0);
    tokio::task::yield_now().await;
    assert_eq!(done.load(Ordering::SeqCst), 3);
    go.send(()).unwrap();
    receiver.await.unwrap();
}
