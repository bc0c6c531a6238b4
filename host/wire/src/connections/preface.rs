//! What is read on an HTTP/2 connection: detects that the preface has arrived, and rewrites
//! `:authority` on Unix sockets.

use super::ConnectionState;
use super::unix_authority::UnixAuthority;
use crate::socket::SocketStream;
use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of the preface: `PRI * HTTP/2.0…`, and the header of a SETTINGS frame.
const PREFACE: usize = 24 + 9;

/// The stream that hyper reads and writes.
pub struct PrefaceWatch {
    stream: SocketStream,
    state: Arc<ConnectionState>,
    missing: usize,
    /// `None` on TCP.
    authority: Option<UnixAuthority>,
}

impl PrefaceWatch {
    pub fn new(stream: SocketStream, state: Arc<ConnectionState>) -> Self {
        let authority = matches!(stream, SocketStream::Unix(_)).then(UnixAuthority::default);
        Self { stream, state, missing: PREFACE, authority }
    }
}

impl AsyncRead for PrefaceWatch {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
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
