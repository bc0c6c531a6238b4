//! Messages over a Unix socket: a length, then the message; files travel beside the first byte of theirs.

use crate::error::{Error, Result};
use crate::sync::Mutex;
use prost::Message;
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
use std::time::{Duration, Instant};

/// Longer messages are a fault of the other side: whoever makes them sees to it that there are none.
pub const LONGEST: usize = 64 << 20;
/// What a longer message took is given back after it.
const ROOM: usize = 1 << 20;
/// Files in one message.
const MOST_FILES: usize = 4;

/// Both directions of a fresh connection, one for each process.
pub fn pair() -> Result<(UnixStream, UnixStream)> {
    UnixStream::pair().map_err(|e| lost("made", e))
}

fn lost(what: &str, e: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("the connection between two processes cannot be {what}: {e}"))
}

/// What [`Receiver::receive`] found.
#[derive(Debug, PartialEq)]
pub enum Received<M> {
    Message(M),
    /// The other side is gone.
    Closed,
    /// Nothing came in time.
    Silence,
}

/// The sending half; any thread may send, whole messages follow one another.
pub struct Sender {
    socket: Arc<UnixStream>,
    scratch: Mutex<Vec<u8>>,
}

/// The receiving half, of one thread.
pub struct Receiver {
    socket: Arc<UnixStream>,
    buffer: Vec<u8>,
    /// What was received and not yet taken lies in between.
    start: usize,
    end: usize,
    files: VecDeque<OwnedFd>,
    timeout: Option<Duration>,
    /// How long to look for bytes again and again before sleeping until they come.
    spin: Duration,
    /// So many times it is not tried, because it was in vain.
    skip: u32,
}

/// Times that [`Receiver`] sleeps at once after it has spun in vain.
const DISCOURAGED: u32 = 32;

/// The two halves of one end.
pub fn halves(socket: UnixStream) -> (Sender, Receiver) {
    let socket = Arc::new(socket);
    let sender = Sender { socket: Arc::clone(&socket), scratch: Mutex::default() };
    let buffer = vec![0; 4 << 10];
    (
        sender,
        Receiver {
            socket,
            buffer,
            start: 0,
            end: 0,
            files: VecDeque::new(),
            timeout: None,
            spin: Duration::ZERO,
            skip: 0,
        },
    )
}

impl Sender {
    /// Sends one message; blocks while the other side does not read.
    ///
    /// # Errors
    /// The other side is gone, or has not read for as long as the connection's time allows; INVALID_ARG when the
    /// message is longer than [`LONGEST`], of which nothing was sent.
    pub fn send(&self, message: &impl Message) -> Result<()> {
        self.send_with(message, &[])
    }

    /// The same with files, at most four.
    pub fn send_with(&self, message: &impl Message, files: &[BorrowedFd<'_>]) -> Result<()> {
        let mut scratch = self.scratch.lock();
        let len = message.encoded_len();
        if len > LONGEST {
            return Err(Error::invalid(format!(
                "a message of {len} bytes is too long for the connection between two processes"
            )));
        }
        scratch.clear();
        scratch.extend_from_slice(&(len as u32).to_ne_bytes());
        message.encode_raw(&mut *scratch);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(lost("used", "too many files in one message"));
        }
        let mut at = 0;
        while at < scratch.len() {
            let bytes = [IoSlice::new(&scratch[at..])];
            match rustix::net::sendmsg(&self.socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    at += sent;
                    ancillary.clear();
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(lost("written", e)),
            }
        }
        if scratch.capacity() > ROOM {
            *scratch = Vec::new();
        }
        Ok(())
    }

    /// Sends one short message if that takes no waiting; false when it was not sent.
    pub fn nudge(&self, message: &impl Message) -> bool {
        // Who holds it may be waiting for the other side.
        let Some(mut scratch) = self.scratch.try_lock() else { return false };
        scratch.clear();
        scratch.extend_from_slice(&(message.encoded_len() as u32).to_ne_bytes());
        message.encode_raw(&mut *scratch);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::send(&self.socket, &scratch, flags) {
            Ok(sent) if sent == scratch.len() => true,
            // Half a message cannot be taken back.
            Ok(_) => {
                self.shut_down();
                false
            }
            Err(_) => false,
        }
    }

    /// Ends the connection for both sides.
    pub fn shut_down(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

impl Receiver {
    /// How long [`Receiver::receive`] waits for the next bytes, and for all of a message that comes in pieces; `None` =
    /// for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.timeout = timeout;
        self.socket.set_read_timeout(timeout).map_err(|e| lost("used", e))
    }

    /// The next bytes are looked for so long before this thread sleeps until they come: for those that mostly come
    /// before a sleeping thread would be awake.
    pub fn set_spin(&mut self, spin: Duration) {
        self.spin = spin;
    }

    /// The next message.
    ///
    /// # Errors
    /// What came is no message.
    pub fn receive<M: Message + Default>(&mut self) -> Result<Received<M>> {
        if let Some(nothing) = self.fill(4)? {
            return Ok(nothing);
        }
        let mut len = [0; 4];
        len.copy_from_slice(&self.buffer[self.start..self.start + 4]);
        let len = u32::from_ne_bytes(len) as usize;
        if len > LONGEST {
            return Err(lost("read", format_args!("a message of {len} bytes is announced")));
        }
        if let Some(nothing) = self.fill(4 + len)? {
            return Ok(nothing);
        }
        let begin = self.start + 4;
        let message = M::decode(&self.buffer[begin..begin + len]).map_err(|e| lost("read", e))?;
        self.start = begin + len;
        if self.buffer.len() > ROOM && self.end - self.start <= ROOM {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            self.buffer.truncate(ROOM);
            self.buffer.shrink_to_fit();
        }
        Ok(Received::Message(message))
    }

    /// The next file that came with a message, in the order of sending.
    pub fn file(&mut self) -> Option<OwnedFd> {
        self.files.pop_front()
    }

    /// Receives until `need` bytes are there, or says why they do not come.
    fn fill<M>(&mut self, need: usize) -> Result<Option<Received<M>>> {
        if self.end - self.start >= need {
            return Ok(None);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < need {
            self.buffer.resize(need, 0);
        }
        self.skip = self.skip.saturating_sub(1);
        let mut spin = (!self.spin.is_zero() && self.skip == 0).then(|| Instant::now() + self.spin);
        let mut begun = None;
        while self.end < need {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut bytes = [IoSliceMut::new(&mut self.buffer[self.end..])];
            let mut flags = RecvFlags::CMSG_CLOEXEC;
            flags.set(RecvFlags::DONTWAIT, spin.is_some());
            match rustix::net::recvmsg(&*self.socket, &mut bytes, &mut ancillary, flags) {
                Ok(got) => {
                    for message in ancillary.drain() {
                        if let RecvAncillaryMessage::ScmRights(files) = message {
                            // Nobody sends more; those of somebody who does are closed.
                            let room = (2 * MOST_FILES).saturating_sub(self.files.len());
                            self.files.extend(files.take(room));
                        }
                    }
                    if got.bytes == 0 {
                        return Ok(Some(Received::Closed));
                    }
                    self.end += got.bytes;
                    // Whoever sends byte by byte is as good as silent.
                    if self.end < need
                        && let Some(timeout) = self.timeout
                        && begun.get_or_insert_with(Instant::now).elapsed() >= timeout
                    {
                        return Ok(Some(Received::Silence));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                // As if it had been closed: the other side died with unread messages.
                Err(rustix::io::Errno::CONNRESET) => return Ok(Some(Received::Closed)),
                Err(rustix::io::Errno::AGAIN) if spin.is_some() => {
                    if spin.is_some_and(|until| Instant::now() >= until) {
                        (spin, self.skip) = (None, DISCOURAGED);
                    }
                    // Somebody else may have something to do, and be it the other side.
                    std::thread::yield_now();
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(Some(Received::Silence)),
                Err(e) => return Err(lost("read", e)),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
