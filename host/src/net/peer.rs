//! The other end of an HTTP/1 connection: seen leaving while it waits for an answer, whatever it sent before.
//!
//! hyper notices the end of file that a caller leaves behind, but not when bytes of his next requests lie before
//! it: those it does not touch until the running one is answered. So while a whole request is here and its answer
//! is not, the socket is looked at whenever hyper did not.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::future::{Future, poll_fn};
use std::io::{IoSlice, Result};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection in hyper's hands, shared with who watches it. One task uses it: the lock is never waited for.
#[derive(Clone)]
pub struct Peer(Arc<Mutex<Socket>>);

struct Socket {
    stream: TcpStream,
    /// A request has arrived as a whole and is not answered.
    waits: bool,
    /// In this round hyper has read until there was nothing more: it will see for itself.
    watched: bool,
}

impl Peer {
    pub fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(Socket { stream, waits: false, watched: false })))
    }

    /// Drives the connection until it ends or the caller has left. `None` is the latter.
    pub async fn serve<C: Future>(self, connection: C) -> Option<C::Output> {
        let mut connection = pin!(connection);
        let round = |cx: &mut Context<'_>| {
            self.lock().watched = false;
            match connection.as_mut().poll(cx) {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                Poll::Pending => self.lock().poll_left(cx).map(|()| None),
            }
        };
        poll_fn(round).await
    }

    /// The answer to the request is there.
    pub fn answered(&self) {
        self.lock().waits = false;
    }

    fn arrived(&self) {
        self.lock().waits = true;
    }

    fn lock(&self) -> MutexGuard<'_, Socket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Socket {
    /// Bytes that hyper left in the socket hide the end behind them; it is seen when hyper takes them.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.waits || self.watched {
            return Poll::Pending;
        }
        match self.stream.poll_peek(cx, &mut ReadBuf::new(&mut [0])) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(()),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let mut socket = self.lock();
        let read = Pin::new(&mut socket.stream).poll_read(cx, buf);
        socket.watched |= read.is_pending();
        read
    }
}

impl AsyncWrite for Peer {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.lock().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.lock().stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.lock().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(cx)
    }
}

/// The body of a request; tells the peer when it has ended, or nobody wants it.
pub struct RequestBody {
    body: Incoming,
    peer: Option<Peer>,
}

impl RequestBody {
    /// `peer` is none where a call can be reset alone, as in HTTP/2.
    pub fn new(body: Incoming, peer: Option<Peer>) -> Self {
        Self { body, peer }
    }

    fn arrived(&mut self) {
        if let Some(peer) = self.peer.take() {
            peer.arrived();
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
