//! The other end of an HTTP/1 connection: seen leaving while it waits for an answer, whatever it sent before.
//!
//! hyper is told to leave the socket alone while a request runs: looking for the end of file itself, it would set
//! aside room for the next request before this one has let go of its own, and it notices no end that bytes of later
//! requests lie before. So while a whole request is here and its answer is not, the socket is looked at here.

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

/// Of later requests, this much is taken off the socket while one runs.
const AHEAD: usize = 8 << 10;

/// A connection in hyper's hands.
pub struct Connection {
    stream: TcpStream,
    watch: DisconnectWatch,
    /// What came while a request ran, and where hyper is in it.
    ahead: Vec<u8>,
    taken: usize,
}

/// What is known of the other end. Only the connection's task uses it.
#[derive(Clone, Default)]
pub struct DisconnectWatch(Arc<State>);

#[derive(Default)]
struct State {
    /// A request has arrived as a whole and is not answered.
    waits: AtomicBool,
    /// The other end has left meanwhile.
    left: AtomicBool,
}

impl DisconnectWatch {
    /// Drives its connection until that ends or the caller has left. `None` is the latter.
    pub async fn serve<C: Future>(self, connection: C) -> Option<C::Output> {
        let mut connection = pin!(connection);
        let repoll = Repoll::default();
        let mut round = |cx: &mut Context<'_>| match connection.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if self.0.left.load(Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        };
        poll_fn(|cx| repoll.poll(cx, &mut round)).await
    }

    /// The answer to the request is there.
    pub fn answered(&self) {
        self.0.waits.store(false, Relaxed);
    }

    fn arrived(&self) {
        self.0.waits.store(true, Relaxed);
    }
}

impl Connection {
    pub fn new(stream: TcpStream, watch: DisconnectWatch) -> Self {
        Self { stream, watch, ahead: Vec::new(), taken: 0 }
    }

    /// Whether the other end has left. Bytes before the end are taken out of the way; behind more than [`AHEAD`] of
    /// them it is seen when hyper takes them.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.taken == self.ahead.len() {
            let mut room = [MaybeUninit::uninit(); AHEAD];
            let mut read = ReadBuf::uninit(&mut room);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read)) {
                Ok(()) if !read.filled().is_empty() => self.ahead = read.filled().to_vec(),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
            self.taken = 0;
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
        let ahead = &self.ahead[self.taken..];
        if ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let count = ahead.len().min(buf.remaining());
        buf.put_slice(&ahead[..count]);
        self.taken += count;
        if self.taken == self.ahead.len() {
            (self.ahead, self.taken) = (Vec::new(), 0);
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

    /// hyper ends each round with this, whether there was something to write or not.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.watch.0.waits.load(Relaxed) && self.poll_left(cx).is_ready() {
            self.watch.0.left.store(true, Relaxed);
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of a request; tells the peer when it has ended, or nobody wants it.
pub struct RequestBody {
    body: Incoming,
    watch: Option<DisconnectWatch>,
}

impl RequestBody {
    /// `watch` is none where a call can be reset alone, as in HTTP/2.
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
