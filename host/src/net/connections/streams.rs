//! Counts the streams of an HTTP/2 connection.

use super::ConnectionState;
use hyper::rt::Executor;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An executor of a connection that counts its streams.
#[derive(Clone)]
pub struct CountStreams<E> {
    pub executor: E,
    pub state: Arc<ConnectionState>,
}

impl<E: Executor<Counted<F>>, F> Executor<F> for CountStreams<E> {
    fn execute(&self, stream: F) {
        self.state.stream_began();
        let _open = OpenStream(Arc::clone(&self.state));
        self.executor.execute(Counted { stream, _open });
    }
}

pin_project_lite::pin_project! {
    /// A stream that counts as open until it is dropped.
    pub struct Counted<F> {
        #[pin]
        stream: F,
        _open: OpenStream,
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().stream.poll(cx)
    }
}

struct OpenStream(Arc<ConnectionState>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.stream_ended();
    }
}
