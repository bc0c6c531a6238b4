//! A blocking socket whose sends and receives end at a deadline.

use super::spin::SpinPolicy;
use crate::error::{Error, Kind, Result};
use crate::transport::connect::PlainSocket;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Takes a connected socket out of its runtime.
    pub fn new(plain: PlainSocket) -> Result<Self> {
        let fd: std::io::Result<OwnedFd> = match plain {
            PlainSocket::Tcp(stream) => stream.into_std().and_then(|stream| {
                stream.set_nonblocking(false)?;
                Ok(stream.into())
            }),
            PlainSocket::Unix(stream) => stream.into_std().and_then(|stream| {
                stream.set_nonblocking(false)?;
                Ok(stream.into())
            }),
        };
        fd.map(Self).map_err(|e| Error::new(Kind::Connect, format!("cannot connect: {e}")))
    }

    /// Ends the connection, also if another thread waits for it.
    pub fn shut_down(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

/// A socket in use by one thread.
pub(super) struct DirectChannel {
    socket: Arc<Socket>,
    /// `SO_RCVTIMEO`. Setting it is a system call, so it is kept for calls with the same limit.
    timeout: Option<Duration>,
    spin: SpinPolicy,
}

/// Why bytes could not be sent or received.
pub(super) enum SocketProblem {
    DeadlinePassed,
    Errno(Errno),
}

impl DirectChannel {
    pub fn new(socket: Arc<Socket>) -> Self {
        Self { socket, timeout: None, spin: SpinPolicy::default() }
    }

    /// Sends all bytes. The error comes with the number of bytes sent.
    pub fn send(
        &self,
        bytes: &[u8],
        deadline: Option<Instant>,
    ) -> std::result::Result<(), (SocketProblem, usize)> {
        let mut sent = 0;
        while sent < bytes.len() {
            match send(&self.socket.0, &bytes[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.wait_writable(deadline).map_err(|problem| (problem, sent))?;
                }
                Err(errno) => return Err((SocketProblem::Errno(errno), sent)),
            }
        }
        Ok(())
    }

    fn wait_writable(&self, deadline: Option<Instant>) -> std::result::Result<(), SocketProblem> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(SocketProblem::DeadlinePassed);
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut sockets = [PollFd::new(&self.socket.0, PollFlags::OUT)];
        match poll(&mut sockets, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(SocketProblem::Errno(errno)),
        }
    }

    /// Waits for bytes and appends them, as many as there is capacity for; 0 at the end of the
    /// connection.
    pub fn receive(
        &mut self,
        into: &mut Vec<u8>,
        deadline: Option<Instant>,
    ) -> std::result::Result<usize, SocketProblem> {
        // Polling must not outlast the deadline.
        let is_due_soon = deadline.is_some_and(|at| at < Instant::now() + 2 * super::spin::LIMIT);
        if !is_due_soon {
            let Self { socket, spin, .. } = self;
            let polled =
                spin.until(|| match recv(&socket.0, spare_capacity(into), RecvFlags::DONTWAIT) {
                    Err(Errno::AGAIN | Errno::INTR) => None,
                    received => Some(received),
                });
            match polled {
                Some(Ok((count, _))) => return Ok(count),
                Some(Err(errno)) => return Err(SocketProblem::Errno(errno)),
                None => {}
            }
        }
        loop {
            self.limit(deadline)?;
            match recv(&self.socket.0, spare_capacity(into), RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(SocketProblem::Errno(errno)),
            }
        }
    }

    /// As [`receive`](Self::receive) of what has arrived; `None` if nothing has.
    pub fn receive_now(&self, into: &mut Vec<u8>) -> std::result::Result<Option<usize>, Errno> {
        loop {
            match recv(&self.socket.0, spare_capacity(into), RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Makes the next receive end at the deadline. A timeout that is set may be longer by a
    /// thousandth and a millisecond.
    fn limit(&mut self, deadline: Option<Instant>) -> std::result::Result<(), SocketProblem> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(SocketProblem::DeadlinePassed);
        }
        let fits = match (self.timeout, left) {
            (None, None) => true,
            (Some(set), Some(left)) => {
                set >= left && set - left <= left / 1000 + Duration::from_millis(1)
            }
            _ => false,
        };
        if !fits {
            // The kernel takes microseconds, and 0 as no limit.
            let rounded = left.map(|left| left + Duration::from_micros(1));
            set_socket_timeout(&self.socket.0, Timeout::Recv, rounded)
                .map_err(SocketProblem::Errno)?;
            self.timeout = left;
        }
        Ok(())
    }
}
