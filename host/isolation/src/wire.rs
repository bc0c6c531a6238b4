//! Framing of messages over a Unix socket: a length prefix, then the message; file descriptors
//! travel with its first byte (`SCM_RIGHTS`).

use parking_lot::Mutex;
use prost::Message;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trtserver_base::error::{Error, Result};

/// Size limit of a message. Senders refuse longer ones; to a receiver they are a protocol
/// violation.
pub const MAX_MESSAGE: usize = 64 << 20;
/// Buffers that grew beyond this are freed after the message.
const KEEP: usize = 1 << 20;
/// Limit of file descriptors in one message.
pub const MAX_FILES: usize = 4;

/// How long a message that must not wait for the peer waits for another thread that is sending one:
/// longer than the scheduler keeps that thread from its processor.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(20);

/// A wake-up: the head of a message without bytes.
const WAKE: [u8; 4] = [0; 4];

/// A new connection: one socket for each process.
pub fn socket_pair() -> Result<(UnixStream, UnixStream)> {
    UnixStream::pair().map_err(|e| connection_error("created", e))
}

fn connection_error(what: &str, e: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("the connection between two processes cannot be {what}: {e}"))
}

/// What [`Receiver::receive`] found.
#[derive(Debug, PartialEq)]
pub enum ReceiveOutcome<M> {
    Message(M),
    /// The peer closed the connection or died.
    Closed,
    /// Nothing was received in time.
    TimedOut,
}

/// What [`Receiver::wait`] has waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WakeCause {
    ByPeer,
    /// The next [`Receiver::receive`] begins with a message.
    ByMessage,
}

/// The sending half. Any thread may send; messages are not interleaved.
pub struct Sender {
    socket: Arc<UnixStream>,
    scratch: Mutex<Vec<u8>>,
    /// The holder of the lock waits until the peer reads.
    blocked: AtomicBool,
}

/// The receiving half, used by one thread.
pub struct Receiver {
    socket: Arc<UnixStream>,
    buffer: Vec<u8>,
    /// Bounds of the received bytes that were not consumed.
    start: usize,
    end: usize,
    files: VecDeque<OwnedFd>,
    timeout: Option<Duration>,
}

/// Splits one end into its halves.
pub fn split_socket(socket: UnixStream) -> (Sender, Receiver) {
    let socket = Arc::new(socket);
    let sender = Sender {
        socket: Arc::clone(&socket),
        scratch: Mutex::default(),
        blocked: AtomicBool::new(false),
    };
    let buffer = vec![0; 4 << 10];
    (sender, Receiver { socket, buffer, start: 0, end: 0, files: VecDeque::new(), timeout: None })
}

impl Sender {
    /// Sends one message; blocks while the peer does not read.
    ///
    /// # Errors
    /// The peer is gone, or has not read within the write timeout. INVALID_ARG for a message longer
    /// than [`MAX_MESSAGE`]; nothing was sent then.
    pub fn send(&self, message: &impl Message) -> Result<()> {
        self.send_with(message, &[])
    }

    /// Sends a message with at most [`MAX_FILES`] file descriptors.
    pub fn send_with(&self, message: &impl Message, files: &[BorrowedFd<'_>]) -> Result<()> {
        let mut scratch = self.scratch.lock();
        let len = message.encoded_len();
        if len > MAX_MESSAGE {
            return Err(Error::invalid(format!(
                "a message of {len} bytes is too long for the connection between two processes"
            )));
        }
        scratch.clear();
        scratch.extend_from_slice(&(len as u32).to_ne_bytes());
        message.encode_raw(&mut *scratch);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(connection_error("used", "too many files in one message"));
        }
        let mut at = 0;
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = loop {
            if at == scratch.len() {
                break Ok(());
            }
            let bytes = [IoSlice::new(&scratch[at..])];
            match rustix::net::sendmsg(&self.socket, &bytes, &mut ancillary, flags) {
                Ok(sent) => {
                    at += sent;
                    ancillary.clear();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if flags.contains(SendFlags::DONTWAIT) => {
                    self.blocked.store(true, Ordering::Relaxed);
                    flags = SendFlags::NOSIGNAL;
                }
                Err(e) => break Err(connection_error("written", e)),
            }
        };
        self.blocked.store(false, Ordering::Relaxed);
        sent?;
        if scratch.capacity() > KEEP {
            *scratch = Vec::new();
        }
        Ok(())
    }

    /// Sends one short message without waiting for the peer; false when it was not sent. Another
    /// thread that is sending is waited for, unless it waits for the peer.
    pub fn try_send(&self, message: &impl Message) -> bool {
        if self.blocked.load(Ordering::Relaxed) {
            return false;
        }
        let Some(mut scratch) = self.scratch.try_lock_for(MAX_LOCK_WAIT) else { return false };
        scratch.clear();
        scratch.extend_from_slice(&(message.encoded_len() as u32).to_ne_bytes());
        message.encode_raw(&mut *scratch);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::send(&self.socket, &scratch, flags) {
            Ok(sent) if sent == scratch.len() => true,
            // A partly sent message would corrupt the stream.
            Ok(_) => {
                self.shut_down();
                false
            }
            Err(_) => false,
        }
    }

    /// Ends [`Receiver::wait`] of the peer, without blocking: while the socket is full, it has
    /// something to receive.
    pub fn wake(&self) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        if rustix::net::send(&self.socket, &WAKE, flags).is_ok_and(|sent| sent < WAKE.len()) {
            self.shut_down();
        }
    }

    /// Closes the connection for both sides.
    pub fn shut_down(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

impl Receiver {
    /// How long [`Receiver::receive`] waits for the next bytes, and for all of a message that
    /// arrives in pieces; `None` = no limit.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.timeout = timeout;
        self.socket.set_read_timeout(timeout).map_err(|e| connection_error("used", e))
    }

    /// Waits for a wake-up, which is taken, or for the beginning of a message, which is not.
    pub fn wait(&mut self) -> Result<ReceiveOutcome<WakeCause>> {
        if let Some(end) = self.fill(4)? {
            return Ok(end);
        }
        if self.buffer[self.start..self.start + 4] != WAKE {
            return Ok(ReceiveOutcome::Message(WakeCause::ByMessage));
        }
        self.start += 4;
        Ok(ReceiveOutcome::Message(WakeCause::ByPeer))
    }

    /// The next message.
    ///
    /// # Errors
    /// The bytes received are not a message.
    pub fn receive<M: Message + Default>(&mut self) -> Result<ReceiveOutcome<M>> {
        if let Some(end) = self.fill(4)? {
            return Ok(end);
        }
        let mut len = [0; 4];
        len.copy_from_slice(&self.buffer[self.start..self.start + 4]);
        let len = u32::from_ne_bytes(len) as usize;
        if len > MAX_MESSAGE {
            return Err(connection_error(
                "read",
                format_args!("a message of {len} bytes exceeds the limit of {MAX_MESSAGE}"),
            ));
        }
        if let Some(end) = self.fill(4 + len)? {
            return Ok(end);
        }
        let begin = self.start + 4;
        let message =
            M::decode(&self.buffer[begin..begin + len]).map_err(|e| connection_error("read", e))?;
        self.start = begin + len;
        if self.buffer.len() > KEEP && self.end - self.start <= KEEP {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            self.buffer.truncate(KEEP);
            self.buffer.shrink_to_fit();
        }
        Ok(ReceiveOutcome::Message(message))
    }

    /// The next file descriptor received, in the order of sending.
    pub fn file(&mut self) -> Option<OwnedFd> {
        self.files.pop_front()
    }

    /// Receives until `need` bytes are buffered, or returns why not.
    fn fill<M>(&mut self, need: usize) -> Result<Option<ReceiveOutcome<M>>> {
        if self.end - self.start >= need {
            return Ok(None);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < need {
            self.buffer.resize(need, 0);
        }
        let mut begun = None;
        while self.end < need {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut bytes = [IoSliceMut::new(&mut self.buffer[self.end..])];
            let flags = RecvFlags::CMSG_CLOEXEC;
            match rustix::net::recvmsg(&*self.socket, &mut bytes, &mut ancillary, flags) {
                Ok(got) => {
                    for message in ancillary.drain() {
                        if let RecvAncillaryMessage::ScmRights(files) = message {
                            // Sound peers send no more; further ones are closed.
                            let free = (2 * MAX_FILES).saturating_sub(self.files.len());
                            self.files.extend(files.take(free));
                        }
                    }
                    if got.bytes == 0 {
                        return Ok(Some(ReceiveOutcome::Closed));
                    }
                    self.end += got.bytes;
                    // The timeout covers the whole message, so that sending byte by byte does not
                    // extend it.
                    if self.end < need
                        && let Some(timeout) = self.timeout
                        && begun.get_or_insert_with(Instant::now).elapsed() >= timeout
                    {
                        return Ok(Some(ReceiveOutcome::TimedOut));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                // The peer died with unread messages.
                Err(rustix::io::Errno::CONNRESET) => return Ok(Some(ReceiveOutcome::Closed)),
                Err(rustix::io::Errno::AGAIN) => return Ok(Some(ReceiveOutcome::TimedOut)),
                Err(e) => return Err(connection_error("read", e)),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
