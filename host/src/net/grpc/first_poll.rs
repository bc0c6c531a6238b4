//! Polls the HTTP/2 streams that arrived in one read for the first time in one task; only streams that are then pending get
//! tasks of their own.
//!
//! A request that has arrived completely and is executed inline needs no task and no other thread, and the responses to all
//! requests of one read are sent in one write. The connection does not wait for them: a model that is unexpectedly slow
//! delays the streams that arrived with its request, but none that arrive later.

use crate::sync::Mutex;
use smallvec::SmallVec;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;
type Streams = SmallVec<[Stream; 4]>;

/// Collects the streams that hyper spawns during one poll of a connection.
#[derive(Clone, Default)]
pub struct NewStreams(Arc<Mutex<Streams>>);

impl NewStreams {
    fn push(&self, stream: Stream) {
        self.0.lock().push(stream);
    }

    fn take(&self) -> Streams {
        std::mem::take(&mut *self.0.lock())
    }
}

impl<F> hyper::rt::Executor<F> for NewStreams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.push(Box::pin(stream));
    }
}

/// A connection that spawns its new streams after each poll.
pub struct Connection<C> {
    connection: C,
    new_streams: NewStreams,
}

impl<C: Future + Unpin> Connection<C> {
    /// `new_streams` is the executor of `connection`.
    pub fn new(connection: C, new_streams: NewStreams) -> Self {
        Self { connection, new_streams }
    }
}

impl<C: Future + Unpin> Future for Connection<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let polled = Pin::new(&mut self.connection).poll(cx);
        let streams = self.new_streams.take();
        if !streams.is_empty() {
            tokio::spawn(async move { streams.into_iter().for_each(poll_once) });
        }
        polled
    }
}

/// Polls a stream without a waker; if it is pending, a task of its own polls it next.
fn poll_once(mut stream: Stream) {
    let mut no_waker = Context::from_waker(Waker::noop());
    // A panic ends this stream only, as it would in a task of its own.
    let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut no_waker)));
    if let Ok(Poll::Pending) = polled {
        tokio::spawn(stream);
    }
}

#[cfg(test)]
#[path = "first_poll_tests.rs"]
mod tests;
