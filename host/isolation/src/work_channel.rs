//! The channel of a work connection: ordinary messages go through rings in shared memory
//! (`trtserver_base::arena::ring`), which takes no system call while the receiver is awake.
//!
//! The socket beside the rings wakes a receiver that sleeps, carries long messages and those with
//! files, and ends when a process does. A record in the ring stands for each message on the socket,
//! so the order of all messages is that of the ring.

use super::spin::Spin;
use super::wire::{
    MAX_MESSAGE, ReceiveOutcome, Receiver, Sender, WakeCause, socket_pair, split_socket,
};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use trtserver_base::arena::ring::{
    ClosedFlag, Kind, MAX_RECORD, RingConsumer, RingCorruption, RingPair, RingProducer,
};
use trtserver_base::error::{Error, Result};

/// The bytes of the record are a message.
pub const MESSAGE: Kind = 0;
/// The record stands for the next message on the socket.
pub const ON_SOCKET: Kind = 1;
/// How often a sender looks for space in a full ring. Rings are rarely full, so the receiver does
/// not wake senders.
const LOOK: Duration = Duration::from_micros(100);

/// One side of a channel.
pub struct ChannelEnd {
    pub socket: UnixStream,
    pub rings: RingPair,
    /// It made the rings.
    maker: bool,
}

/// A new channel: our end, and socket and rings for the other process.
pub fn open_work_channel() -> Result<(ChannelEnd, UnixStream, OwnedFd)> {
    let (ours, theirs) = socket_pair()?;
    let (rings, file) = RingPair::new()?;
    Ok((ChannelEnd { socket: ours, rings, maker: true }, theirs, file))
}

impl ChannelEnd {
    /// The end of the other process.
    pub fn other(socket: UnixStream, file: &OwnedFd) -> Result<Self> {
        Ok(Self { socket, rings: RingPair::open(file)?, maker: false })
    }

    /// `timeout`: how long a sender waits for the peer to read, `None` = no limit.
    pub fn split(self, timeout: Option<Duration>) -> Result<(WorkSender, RingConsumer, Receiver)> {
        self.socket
            .set_write_timeout(timeout)
            .map_err(|e| Error::internal(format!("cannot set up a work connection: {e}")))?;
        let (sender, receiver) = split_socket(self.socket);
        let closed = self.rings.closed();
        let (ring, consumer) = self.rings.ends(self.maker);
        let sending = Mutex::new(SendRing { ring, scratch: Vec::new() });
        Ok((WorkSender { sending, closed, socket: sender, timeout }, consumer, receiver))
    }
}

/// The sending half. Any thread may send.
pub struct WorkSender {
    sending: Mutex<SendRing>,
    closed: ClosedFlag,
    socket: Sender,
    timeout: Option<Duration>,
}

struct SendRing {
    ring: RingProducer,
    scratch: Vec<u8>,
}

impl WorkSender {
    /// Sends one message; blocks while the peer does not read. Returns the position in the ring
    /// behind it.
    ///
    /// # Errors
    /// The errors of [`Sender::send`].
    pub fn send(&self, message: &impl Message) -> Result<u64> {
        self.send_with(message, &[])
    }

    /// Sends one message if it is short and the ring has space for it. Returns the position in the
    /// ring behind it.
    ///
    /// # Errors
    /// The peer has damaged the ring.
    pub fn send_now(&self, message: &impl Message) -> Result<Option<u64>> {
        // The holder of the lock may wait until the peer reads.
        let Some(mut sending) = self.sending.try_lock() else { return Ok(None) };
        let SendRing { ring, scratch } = &mut *sending;
        if message.encoded_len() > MAX_RECORD {
            return Ok(None);
        }
        scratch.clear();
        message.encode_raw(scratch);
        let sent = ring.push(MESSAGE, scratch).map_err(corrupt_ring_error)?;
        self.wake(ring);
        Ok(sent.then(|| ring.position()))
    }

    /// Sends a message with files.
    pub fn send_with(&self, message: &impl Message, files: &[BorrowedFd<'_>]) -> Result<u64> {
        let mut sending = self.sending.lock();
        let len = message.encoded_len();
        if len > MAX_MESSAGE {
            return Err(Error::invalid(format!(
                "a message of {len} bytes is too long for the connection between two processes"
            )));
        }
        let long = len > MAX_RECORD || !files.is_empty();
        let SendRing { ring, scratch } = &mut *sending;
        scratch.clear();
        if !long {
            message.encode_raw(scratch);
        }
        let kind = if long { ON_SOCKET } else { MESSAGE };
        let mut began = None;
        while !ring.push(kind, scratch).map_err(corrupt_ring_error)? {
            self.wake(ring);
            let waited = began.get_or_insert_with(Instant::now).elapsed();
            if self.closed.is_set() || self.timeout.is_some_and(|limit| waited >= limit) {
                return Err(Error::unavailable("the other process does not read its messages"));
            }
            std::thread::sleep(LOOK);
        }
        let position = ring.position();
        if long {
            self.socket.send_with(message, files)?;
        } else {
            self.wake(ring);
        }
        Ok(position)
    }

    fn wake(&self, ring: &RingProducer) {
        if ring.must_wake() {
            self.socket.wake();
        }
    }

    /// The peer has taken the messages up to this position, if it can be believed.
    pub fn taken(&self) -> u64 {
        self.lock().ring.taken()
    }

    /// Closes the connection for both sides.
    pub fn shut_down(&self) {
        self.closed.set();
        self.socket.shut_down();
    }

    fn lock(&self) -> MutexGuard<'_, SendRing> {
        self.sending.lock()
    }
}

pub fn corrupt_ring_error(_: RingCorruption) -> Error {
    Error::unavailable("the other process has damaged the rings of their connection")
}

/// The receiving half of the child, used by one thread.
pub struct WorkReceiver {
    ring: RingConsumer,
    pub socket: Receiver,
    buffer: Vec<u8>,
    spin: Spin,
}

impl WorkReceiver {
    pub fn new(ring: RingConsumer, socket: Receiver, spin: Duration) -> Self {
        Self { ring, socket, buffer: Vec::new(), spin: Spin::new(spin) }
    }

    /// The next message.
    ///
    /// # Errors
    /// What was received is not a message.
    pub fn receive<M: Message + Default>(&mut self) -> Result<ReceiveOutcome<M>> {
        self.receive_after(|| ())
    }

    /// The same. `before` is called before a message is taken.
    ///
    /// # Errors
    /// The errors of [`WorkReceiver::receive`].
    pub fn receive_after<M: Message + Default>(
        &mut self,
        before: impl Fn(),
    ) -> Result<ReceiveOutcome<M>> {
        loop {
            before();
            match self.ring.pop(&mut self.buffer).map_err(corrupt_ring_error)? {
                Some(MESSAGE) => return decode_message(&self.buffer).map(ReceiveOutcome::Message),
                Some(ON_SOCKET) => return receive_long(&mut self.socket),
                Some(kind) => return Err(unknown_record_error(kind)),
                None => {}
            }
            if self.spin.until(|| !self.ring.is_empty()) || !self.ring.prepare_sleep() {
                continue;
            }
            let woken = self.socket.wait();
            self.ring.awake();
            match woken? {
                // Records that were published before the end are taken first.
                _ if !self.ring.is_empty() => {}
                ReceiveOutcome::Message(WakeCause::ByPeer) => {}
                ReceiveOutcome::Message(WakeCause::ByMessage) => {
                    return Err(unannounced_message_error());
                }
                ReceiveOutcome::Closed => return Ok(ReceiveOutcome::Closed),
                ReceiveOutcome::TimedOut => return Ok(ReceiveOutcome::TimedOut),
            }
        }
    }
}

/// The message on the socket that an [`ON_SOCKET`] record stands for.
pub fn receive_long<M: Message + Default>(socket: &mut Receiver) -> Result<ReceiveOutcome<M>> {
    loop {
        match socket.wait()? {
            ReceiveOutcome::Message(WakeCause::ByPeer) => {}
            ReceiveOutcome::Message(WakeCause::ByMessage) => return socket.receive(),
            ReceiveOutcome::Closed => return Ok(ReceiveOutcome::Closed),
            ReceiveOutcome::TimedOut => return Ok(ReceiveOutcome::TimedOut),
        }
    }
}

pub fn decode_message<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|e| Error::unavailable(format!("a message cannot be read: {e}")))
}

pub fn unknown_record_error(kind: Kind) -> Error {
    Error::unavailable(format!("a record of unknown kind {kind}"))
}

/// A message on the socket without a record.
pub fn unannounced_message_error() -> Error {
    Error::unavailable("a message without its record")
}
