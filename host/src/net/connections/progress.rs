//! Progress of a request body on HTTP/2, where one connection has many. Only bodies that do not arrive in one piece are
//! registered.

use super::ConnectionState;
use std::sync::Arc;
use std::task::Waker;

/// The progress of one body. Small, since each request has one.
pub struct BodyProgress {
    state: Arc<ConnectionState>,
    /// [`NONE`] until the body has to be awaited.
    key: u32,
    /// The client may pause for any time, as in a stream of messages.
    may_pause: bool,
}

const NONE: u32 = u32::MAX;

impl BodyProgress {
    pub fn new(state: Arc<ConnectionState>) -> Self {
        Self { state, key: NONE, may_pause: false }
    }

    pub fn allow_pauses(&mut self) {
        self.may_pause = true;
        self.ended();
    }

    /// More of the body is awaited. True if it took too long.
    pub fn waits(&mut self, waker: &Waker) -> bool {
        if self.may_pause {
            return false;
        }
        if self.key != NONE {
            return self.state.bodies.waits(self.key, waker);
        }
        self.key = self.state.bodies.add(waker);
        false
    }

    /// Bytes have arrived.
    pub fn received(&mut self, bytes: usize) {
        if self.key != NONE {
            self.state.bodies.received(self.key, bytes);
        }
    }

    /// The body has arrived, or is not read any more.
    pub fn ended(&mut self) {
        if self.key != NONE {
            self.state.bodies.remove(self.key);
            self.key = NONE;
        }
    }
}

impl Drop for BodyProgress {
    fn drop(&mut self) {
        self.ended();
    }
}
