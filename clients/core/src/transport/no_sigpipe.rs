//! Sockets of a runtime whose writes raise no SIGPIPE when the server has closed the connection. It
//! would end the C and C++ programs that use the library; Rust's programs and Python ignore the
//! signal.

use rustix::fd::AsFd;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// The kernel takes no more buffers at once.
const MOST_BUFFERS: usize = 1024;

pub(super) struct NoSignal<S>(pub S);

pub(super) trait Socket: AsyncRead + AsyncWrite + AsFd + Unpin {
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Calls `write`; remembers that the socket is full if it says so.
    fn try_write(&self, write: &mut dyn FnMut() -> io::Result<usize>) -> io::Result<usize>;
}

impl Socket for TcpStream {
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(context)
    }

    fn try_write(&self, write: &mut dyn FnMut() -> io::Result<usize>) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, write)
    }
}

impl Socket for UnixStream {
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(context)
    }

    fn try_write(&self, write: &mut dyn FnMut() -> io::Result<usize>) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, write)
    }
}

impl<S: Socket> NoSignal<S> {
    fn poll_with(
        &self,
        context: &mut Context<'_>,
        mut write: impl FnMut(&S) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_writable(context))?;
            match self.0.try_write(&mut || Ok(write(&self.0)?)) {
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }
}

impl<S: Socket> AsyncRead for NoSignal<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: Socket> AsyncWrite for NoSignal<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(context, |socket| send(socket, bytes, SendFlags::NOSIGNAL))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let buffers = &buffers[..buffers.len().min(MOST_BUFFERS)];
        self.poll_with(context, |socket| {
            sendmsg(socket, buffers, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
