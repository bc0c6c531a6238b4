//! Streams of an HTTP/2 connection that were read together are tried together, in one task; only those that have to wait get
//! tasks of their own.
//!
//! A request that is whole when its head is read, and answered at once, costs no task and no other thread; the answers to
//! all requests that were read together leave in one write. The connection itself does not wait: a model that is slow
//! against expectation holds up what was read with its request, and nothing that comes later.

use crate::sync::Mutex;
use smallvec::SmallVec;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;
type Streams = SmallVec<[Stream; 4]>;

/// Takes the streams of one connection from hyper, until the connection has read all there is.
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

/// A connection that sets its streams off, as one future, which ends with the connection.
pub struct Connection<C> {
    connection: C,
    new_streams: NewStreams,
}

impl<C: Future + Unpin> Connection<C> {
    /// `connection` puts its streams into `new_streams`.
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
            tokio::spawn(async move { streams.into_iter().for_each(try_once) });
        }
        polled
    }
}

/// Polls a stream without a promise to come back; if it is not done, a task begins anew.
fn try_once(mut stream: Stream) {
    let mut nobody = Context::from_waker(Waker::noop());
    // A panic ends the stream, as in a task of its own, and not those beside it.
    let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut nobody)));
    if let Ok(Poll::Pending) = polled {
        tokio::spawn(stream);
    }
}

#[cfg(test)]
#[path = "first_poll_tests.rs"]
mod tests;
