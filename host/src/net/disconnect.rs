//! Detects HTTP/1 clients that disconnect while they wait for a response, also behind pipelined requests.
//!
//! hyper is configured to not read the socket while a request is executed: to see the end of file it would allocate a
//! buffer for the next request before the current one has released its own, and bytes of pipelined requests would hide the
//! end. Instead, [`Connection`] polls the socket from when a request has arrived completely until its response is ready.

use super::repoll::Repoll;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::future::{Future, poll_fn};
use std::io::{IoSlice, Result};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of pipelined requests that are buffered while a request is executed.
const MAX_BUFFERED: usize = 8 << 10;

/// The stream that hyper reads and writes.
pub struct Connection {
    stream: TcpStream,
    watch: DisconnectWatch,
    /// Bytes that arrived while a request was executed.
    buffered: Vec<u8>,
    /// How many of them hyper has read.
    consumed: usize,
}

/// Whether the client of a connection waits, and whether it has disconnected. Only the connection's task uses it.
#[derive(Clone, Default)]
pub struct DisconnectWatch(Arc<Flags>);

#[derive(Default)]
struct Flags {
    /// A request has arrived completely and its response is not ready.
    waiting: AtomicBool,
    /// The client disconnected in that time.
    disconnected: AtomicBool,
}

impl DisconnectWatch {
    /// Drives the connection until it ends, or the client has disconnected: `None`.
    pub async fn serve<C: Future>(self, connection: C) -> Option<C::Output> {
        let mut connection = pin!(connection);
        let repoll = Repoll::default();
        let mut poll = |cx: &mut Context<'_>| match connection.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if self.0.disconnected.load(Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        };
        poll_fn(|cx| repoll.poll(cx, &mut poll)).await
    }

    /// The response is ready.
    pub fn responded(&self) {
        self.0.waiting.store(false, Relaxed);
    }

    fn arrived(&self) {
        self.0.waiting.store(true, Relaxed);
    }
}

impl Connection {
    pub fn new(stream: TcpStream, watch: DisconnectWatch) -> Self {
        Self { stream, watch, buffered: Vec::new(), consumed: 0 }
    }

    /// Ready when the client has disconnected. Bytes before the end of file are buffered; behind more than
    /// [`MAX_BUFFERED`] of them the end is seen once hyper has read them.
    fn poll_disconnected(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.consumed == self.buffered.len() {
            let mut space = [MaybeUninit::uninit(); MAX_BUFFERED];
            let mut read = ReadBuf::uninit(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read)) {
                Ok(()) if !read.filled().is_empty() => self.buffered = read.filled().to_vec(),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
            self.consumed = 0;
        }
        match ready!(self.stream.poll_peek(cx, &mut ReadBuf::new(&mut [0]))) {
            Ok(0) | Err(_) => Poll::Ready(()),
            Ok(_) => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let buffered = &self.buffered[self.consumed..];
        if buffered.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let count = buffered.len().min(buf.remaining());
        buf.put_slice(&buffered[..count]);
        self.consumed += count;
        if self.consumed == self.buffered.len() {
            (self.buffered, self.consumed) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper calls this at the end of each poll, also when nothing was written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.watch.0.waiting.load(Relaxed) && self.poll_disconnected(cx).is_ready() {
            self.watch.0.disconnected.store(true, Relaxed);
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of a request. Notifies the watch when it ends or is dropped.
pub struct RequestBody {
    body: Incoming,
    watch: Option<DisconnectWatch>,
}

impl RequestBody {
    /// `watch` is `None` for HTTP/2, where a stream can be reset on its own.
    pub fn new(body: Incoming, watch: Option<DisconnectWatch>) -> Self {
        Self { body, watch }
    }

    fn arrived(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.arrived();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.arrived();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.arrived();
    }
}
