//! Counts the streams of an HTTP/2 connection, which are calls.

use super::ConnectionState;
use super::open_calls::CountedCall;
use hyper::rt::Executor;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An executor of a connection that ends the count of its calls. The service has begun it when it
/// got the request.
#[derive(Clone)]
pub struct CountStreams<E> {
    pub executor: E,
    pub state: Arc<ConnectionState>,
}

impl<E: Executor<CountedStream<F>>, F> Executor<F> for CountStreams<E> {
    fn execute(&self, stream: F) {
        let call = self.state.streams().and_then(|streams| streams.calls.take_begun());
        let _open = OpenStream { state: Arc::clone(&self.state), call };
        self.executor.execute(CountedStream { stream, _open });
    }
}

pin_project_lite::pin_project! {
    /// A stream whose call counts as open until it is dropped.
    pub struct CountedStream<F> {
        #[pin]
        stream: F,
        _open: OpenStream,
    }
}

impl<F: Future> Future for CountedStream<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().stream.poll(cx)
    }
}

struct OpenStream {
    state: Arc<ConnectionState>,
    /// `None` if it was refused.
    call: Option<CountedCall>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            self.state.call_ended(call);
        }
    }
}
