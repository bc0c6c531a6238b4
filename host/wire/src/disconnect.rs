//! Detects HTTP/1 clients that disconnect while they wait for a response, also behind pipelined
//! requests.
//!
//! hyper is configured to not read the socket while a request is executed: to see the end of file
//! it would allocate a buffer for the next request before the current one has released its own, and
//! bytes of pipelined requests would hide the end. Instead, [`WatchedConnection`] polls the socket
//! from when a request has arrived completely until its response is ready.
//!
//! An end of file alone may also be a client that has closed its sending side only and reads the
//! response (promises 3.10 and 3.17 of SPECIFICATION.md), and one that has closed its socket has to
//! free its place in the queue at once (3.7). TCP shows the server the same in both cases: the
//! events of `poll`, the state of the socket and the replies to keep-alive probes. Only bytes
//! differ: the system of a client that has closed its socket replies to them with a reset. So the
//! server sends `100 Continue`, which any client of HTTP/1.1 skips. HTTP/1.0 has no such response,
//! so its clients count as disconnected only once the connection is reset.
//!
//! End of file and probe are read from and written to the stream as other bytes are, so the stream
//! may be an encrypted one. There a client that has closed its sending side has said so
//! (`close_notify`); an end of file without that is an error, and the client has disconnected.

use super::connections::{self, ConnectionState, HeadMemory};
use super::socket::SocketStream;
use std::future::Future;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes of pipelined requests that are buffered while a request is executed.
const MAX_BUFFERED: usize = 8 << 10;

/// Sent to distinguish a client that has closed its socket from one that has closed only its
/// sending side.
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// The same between two events of a streamed response: a chunk with a comment, which clients of
/// server-sent events skip.
const STREAM_PROBE: &[u8] = b"3\r\n:\n\n\r\n";
/// Pauses between two probes, after which the system is asked for the reset: since reading has
/// ended there is no event for it. From the first to the second pause, each four times the one
/// before.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The stream that hyper reads and writes.
pub struct WatchedConnection {
    stream: SocketStream,
    watch: DisconnectWatch,
    /// Bytes that arrived while a request was executed.
    buffered: Vec<u8>,
    /// How many of them hyper has read.
    consumed: usize,
    /// `None` until the end of file was seen.
    half_closed: Option<Box<HalfClosed>>,
    head: HeadMemory,
}

/// A connection whose client sends nothing more.
struct HalfClosed {
    pause: Duration,
    next_probe: Pin<Box<Sleep>>,
}

/// Detects that the client disconnects while a request is executed. Only the connection's task uses
/// it.
#[derive(Clone)]
pub struct DisconnectWatch(Arc<ConnectionState>);

/// What the watch over the client of an HTTP/1 connection has seen.
#[derive(Default)]
pub struct ClientState {
    /// The client disconnected while a request was executed.
    disconnected: AtomicBool,
    /// The client uses HTTP/1.0.
    is_http10: AtomicBool,
    /// How far the response is that a handler makes.
    response: AtomicU8,
}

impl ClientState {
    /// The client disconnected while a request was executed.
    pub fn is_disconnected(&self) -> bool {
        self.disconnected.load(Relaxed)
    }

    /// A response is being made or written.
    pub fn has_response(&self) -> bool {
        self.response.load(Relaxed) != NO_RESPONSE
    }
}

/// No handler makes a response: what hyper writes is a response of its own.
const NO_RESPONSE: u8 = 0;
/// A handler was called, and hyper has not taken all of its response.
const IN_HANDLER: u8 = 1;
/// hyper has taken the response and not written all of it.
const IN_BUFFER: u8 = 2;

impl DisconnectWatch {
    pub fn new(state: &Arc<ConnectionState>) -> Self {
        Self(Arc::clone(state))
    }

    /// The head of a request has arrived.
    pub fn head_arrived(&self) {
        self.0.client.response.store(IN_HANDLER, Relaxed);
        self.0.head_arrived();
    }

    /// hyper has taken the body of the response.
    pub fn response_taken(&self) {
        self.0.client.response.store(IN_BUFFER, Relaxed);
    }

    /// The response is ready. True if it is the last one of the connection.
    pub fn responded(&self) -> bool {
        self.0.responded();
        self.0.is_last()
    }

    /// The first part of a streamed response is ready.
    pub fn response_stream_began(&self) {
        self.0.response_stream_began();
    }

    /// The last part of a streamed response is ready.
    pub fn response_stream_ended(&self) {
        self.0.response_stream_ended();
    }

    /// The state of the connection.
    pub fn state(&self) -> &Arc<ConnectionState> {
        &self.0
    }

    /// The client uses HTTP/1.0, which has no interim responses.
    pub fn set_http10(&self) {
        self.0.client.is_http10.store(true, Relaxed);
    }
}

impl WatchedConnection {
    pub fn new(stream: SocketStream, watch: DisconnectWatch) -> Self {
        let (buffered, head) = (Vec::new(), HeadMemory::default());
        Self { stream, watch, buffered, consumed: 0, half_closed: None, head }
    }

    /// Bytes that hyper has read and not used are read again.
    pub fn put_back(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.buffered.splice(..self.consumed, bytes.iter().copied());
            self.consumed = 0;
        }
    }

    /// Nothing was read that is not used, and the client has not closed its sending side.
    pub fn is_quiet(&self) -> bool {
        self.buffered.is_empty() && self.half_closed.is_none()
    }

    pub fn into_stream(self) -> SocketStream {
        self.stream
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(_)) => self.watch.0.wrote(),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.watch.0.write_blocked(),
        }
    }

    /// Sends a refusal with a text in place of one that hyper has made of `bytes`, if it did.
    fn poll_write_refusal(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Option<Poll<io::Result<()>>> {
        if self.watch.0.client.has_response() {
            return None;
        }
        let refusal = connections::with_text(bytes)?;
        Some(match Pin::new(&mut self.stream).poll_write(cx, &refusal) {
            Poll::Ready(Ok(n)) if n < refusal.len() => {
                Poll::Ready(Err(io::ErrorKind::WriteZero.into()))
            }
            written => written.map_ok(drop),
        })
    }

    /// Ready when the client has disconnected.
    fn poll_disconnected(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.half_closed.is_none() {
            if ready!(self.poll_end_of_file(cx)).is_err() {
                return Poll::Ready(());
            }
            let (pause, next_probe) = (FIRST_PAUSE, Box::pin(sleep(Duration::ZERO)));
            self.half_closed = Some(Box::new(HalfClosed { pause, next_probe }));
        }
        self.poll_reset(cx)
    }

    /// Ready when the system has received a reset.
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(half_closed) = &mut self.half_closed else { return Poll::Pending };
        loop {
            if !matches!(self.stream.take_error(), Ok(None)) {
                return Poll::Ready(());
            }
            ready!(half_closed.next_probe.as_mut().poll(cx));
            // Behind bytes that TLS holds back a probe might be taken in part.
            let is_flushed = Pin::new(&mut self.stream).poll_flush(cx).is_ready();
            if is_flushed && !self.watch.0.client.is_http10.load(Relaxed) {
                let streaming = self.watch.0.is_streaming();
                let probe = if streaming { STREAM_PROBE } else { PROBE };
                // hyper has written all it had, so this is between two responses, or two chunks.
                // The system takes the probe whole or, when the client does not read, not at all.
                match Pin::new(&mut self.stream).poll_write(cx, probe) {
                    Poll::Ready(Ok(n)) if n == probe.len() => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            half_closed.next_probe.as_mut().reset(Instant::now() + half_closed.pause);
            half_closed.pause = (4 * half_closed.pause).min(MAX_PAUSE);
        }
    }

    /// Ready at the end of file, or with an error. Bytes before the end are buffered; behind more
    /// than [`MAX_BUFFERED`] of them the end is seen once hyper has read them.
    fn poll_end_of_file(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [MaybeUninit::uninit(); MAX_BUFFERED];
        while self.buffered.len() < MAX_BUFFERED {
            let mut read = ReadBuf::uninit(&mut space[self.buffered.len()..]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.buffered.extend_from_slice(read.filled());
        }
        Poll::Pending
    }
}

impl AsyncRead for WatchedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let buffered = &self.buffered[self.consumed..];
        if buffered.is_empty() {
            ready!(self.watch.0.turn.poll_may_read(cx));
            let before = buf.filled().len();
            let read = Pin::new(&mut self.stream).poll_read(cx, buf);
            let count = buf.filled().len() - before;
            if count > 0 {
                let Self { watch, head, .. } = &mut *self;
                head.read(&watch.0, count);
            }
            return read;
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

impl AsyncWrite for WatchedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match self.poll_write_refusal(cx, bytes) {
            Some(refused) => refused.map_ok(|()| bytes.len()),
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
        };
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bytes.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
        let written = match self.poll_write_refusal(cx, first) {
            Some(refused) => refused.map_ok(|()| bytes.iter().map(|part| part.len()).sum()),
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, bytes),
        };
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper calls this at the end of each poll, also when nothing was written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { watch, head, .. } = &mut *self;
        head.settle(&watch.0)?;
        if self.watch.0.is_executing() && self.poll_disconnected(cx).is_ready() {
            self.watch.0.client.disconnected.store(true, Relaxed);
        }
        // hyper has written all it had.
        let _ =
            self.watch.0.client.response.compare_exchange(IN_BUFFER, NO_RESPONSE, Relaxed, Relaxed);
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        match flushed {
            Poll::Pending => self.watch.0.write_blocked(),
            Poll::Ready(_) => self.watch.0.flushed(),
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
