//! Progress of a request body on HTTP/2, where one connection has many. Only bodies that do not
//! arrive in one piece are registered.

use super::bodies::BodyWait;
use super::open_calls::CallClass;
use super::{ConnectionPeer, ConnectionState};
use crate::grpc::unary::PREFIX;
use std::sync::Arc;
use std::task::Waker;
use trtserver_base::error::Result;

/// The progress of one body. Small, since each request has one.
pub struct BodyProgress {
    state: Arc<ConnectionState>,
    /// [`NONE`] while nothing has to be awaited.
    key: u32,
    /// Set for a stream of messages, whose client may pause for any time between two of them.
    stream: Option<Box<Messages>>,
}

const NONE: u32 = u32::MAX;

/// Where in its messages a stream is.
#[derive(Default)]
struct Messages {
    /// Bytes of the prefix that have arrived.
    prefix: u8,
    length: u32,
    /// Bytes of the message that have not arrived.
    missing: u32,
    /// A whole message has arrived.
    any: bool,
}

impl BodyProgress {
    pub fn new(state: Arc<ConnectionState>) -> Self {
        Self { state, key: NONE, stream: None }
    }

    /// The body is a stream of messages: only each of them has to arrive in time.
    pub fn allow_pauses(&mut self) {
        self.stream = Some(Box::default());
    }

    /// Counts the call whose body this is, which holds `bytes`.
    ///
    /// # Errors
    /// It exceeds a limit of open calls.
    pub fn begin_call(&self, class: CallClass, bytes: usize) -> Result<()> {
        self.state.streams().map_or(Ok(()), |streams| streams.calls.begin(class, bytes))
    }

    /// The client that sends it.
    pub fn connection_peer(&self) -> &ConnectionPeer {
        self.state.connection_peer()
    }

    /// The first message of a stream has not arrived.
    pub fn awaits_first_message(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| !stream.any)
    }

    /// More of the body is awaited. True if it took too long.
    pub fn waits(&mut self, waker: &Waker) -> bool {
        let between = self.stream.as_ref().is_some_and(|stream| stream.is_between());
        let first = between && self.awaits_first_message();
        if between && !first {
            return false;
        }
        let Some(streams) = self.state.streams() else { return false };
        if self.key != NONE {
            return streams.bodies.waits(self.key, waker);
        }
        let now = self.state.now_ms();
        let waits = if first { BodyWait::first_message(now) } else { BodyWait::body(now) };
        self.key = streams.bodies.add(waits, waker);
        false
    }

    /// Bytes have arrived.
    pub fn received(&mut self, bytes: &[u8]) {
        if self.stream.as_mut().is_some_and(|stream| stream.received(bytes)) {
            self.ended();
        }
        if self.key != NONE
            && let Some(streams) = self.state.streams()
        {
            streams.bodies.received(self.key, bytes.len(), self.state.now_ms());
        }
    }

    /// The body or message has arrived, or is not read any more.
    pub fn ended(&mut self) {
        if self.key != NONE
            && let Some(streams) = self.state.streams()
        {
            streams.bodies.remove(self.key);
            self.key = NONE;
        }
    }
}

impl Drop for BodyProgress {
    fn drop(&mut self) {
        self.ended();
    }
}

impl Messages {
    fn is_between(&self) -> bool {
        self.prefix == 0 && self.missing == 0
    }

    /// True if a message ends in `bytes`.
    fn received(&mut self, mut bytes: &[u8]) -> bool {
        let mut ended = false;
        while let Some((first, rest)) = bytes.split_first() {
            if self.missing > 0 {
                let step = bytes.len().min(self.missing as usize);
                self.missing -= step as u32;
                bytes = &bytes[step..];
            } else {
                // The flag before the length is shifted out of it.
                self.length = self.length << 8 | u32::from(*first);
                self.prefix += 1;
                bytes = rest;
                if usize::from(self.prefix) < PREFIX {
                    continue;
                }
                self.missing = self.length;
                (self.prefix, self.length) = (0, 0);
            }
            ended |= self.missing == 0;
            self.any |= ended;
        }
        ended
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
