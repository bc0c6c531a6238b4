//! What is read on an HTTP/2 connection: detects that the preface has arrived, and rewrites
//! `:authority` on Unix sockets.

use super::ConnectionState;
use super::poll_turn::{HeaderCost, SHORT_READ};
use super::unix_authority::UnixAuthority;
use crate::socket::SocketStream;
use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of the preface: `PRI * HTTP/2.0…`, and the header of a SETTINGS frame.
const PREFACE: usize = 24 + 9;

/// The stream that hyper reads and writes.
pub struct PrefaceWatch {
    stream: SocketStream,
    state: Arc<ConnectionState>,
    missing: usize,
    cost: HeaderCost,
    /// `None` on TCP.
    authority: Option<UnixAuthority>,
}

impl PrefaceWatch {
    pub fn new(stream: SocketStream, state: Arc<ConnectionState>) -> Self {
        let authority = matches!(stream, SocketStream::Unix(_)).then(UnixAuthority::default);
        Self { stream, state, missing: PREFACE, cost: HeaderCost::default(), authority }
    }
}

impl AsyncRead for PrefaceWatch {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        // hyper passes the waker of the connection's poll down to each read.
        ready!(self.state.turn.poll_may_read(cx));
        let before = buf.filled().len();
        let read = if self.state.turn.reads_less() {
            read_less(&mut self.stream, cx, buf)
        } else {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        };
        let cost = self.cost.count(&buf.filled()[before..]);
        self.state.turn.add(cost);
        if let Some(authority) = &mut self.authority {
            authority.rewrite(&mut buf.filled_mut()[before..]);
        }
        if self.missing > 0 {
            let arrived = buf.filled().len() - before;
            self.missing = self.missing.saturating_sub(arrived);
            if self.missing == 0 {
                self.state.head_arrived();
            } else if arrived > 0 {
                self.state.read(arrived);
            }
        }
        read
    }
}

/// Reads at most [`SHORT_READ`] bytes.
fn read_less(
    stream: &mut SocketStream,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<Result<()>> {
    let mut bytes = [0; SHORT_READ];
    let mut less = ReadBuf::new(&mut bytes[..buf.remaining().min(SHORT_READ)]);
    let read = Pin::new(stream).poll_read(cx, &mut less);
    buf.put_slice(less.filled());
    read
}

impl AsyncWrite for PrefaceWatch {
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
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
