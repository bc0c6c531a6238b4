//! Unread responses: how a response counts towards the limit of its stream or connection, and how a
//! backend sees backpressure.
//!
//! The accounts are kept by frontends (`wire/src/unread`) and, in the process of an isolated model,
//! by the connection to the host.

use super::CancelToken;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::Result;

/// Counts responses that a client has not read.
pub trait UnreadAccount: Send + Sync {
    /// A response of `bytes` was read or discarded. `delivered`: see
    /// [`UnreadResponse::set_delivered`].
    fn release(&self, bytes: usize, delivered: bool);

    /// A counted response reached the frontend.
    fn delivered(&self) {}
}

/// What a response counts beside its tensors.
pub const RESPONSE_OVERHEAD: usize = 512;

/// One counted response; released when dropped.
pub struct UnreadResponse {
    account: Arc<dyn UnreadAccount>,
    bytes: usize,
    delivered: bool,
}

impl UnreadResponse {
    /// The caller has counted `bytes` in `account`.
    pub fn new(account: Arc<dyn UnreadAccount>, bytes: usize) -> Self {
        Self { account, bytes, delivered: false }
    }

    /// The response reached the frontend, so that its client can read it.
    pub fn set_delivered(&mut self) {
        if !std::mem::replace(&mut self.delivered, true) {
            self.account.delivered();
        }
    }
}

impl Drop for UnreadResponse {
    fn drop(&mut self) {
        self.account.release(self.bytes, self.delivered);
    }
}

impl std::fmt::Debug for UnreadResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Unread").field(&self.bytes).finish()
    }
}

/// What is unread of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadBacklog {
    pub bytes: u64,
    pub responses: u64,
    /// A further response waits while `bytes` is at least this.
    pub limit: u64,
}

/// Limits the unread responses of one stream. A response is accepted while they are below the
/// limit, so the limit is exceeded by one response at most.
pub trait StreamLimit: Send + Sync {
    /// Counts a response of `bytes`. With `wait`, blocks while the limit is reached.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when the limit is reached and `wait` is false, or the client reads
    /// nothing for a long time; CANCELLED once `cancel` is set or the stream has ended.
    fn admit(
        self: Arc<Self>,
        bytes: usize,
        wait: bool,
        cancel: &CancelToken,
    ) -> Result<UnreadResponse>;

    fn backlog(&self) -> UnreadBacklog;

    /// Identifies the stream in this process and in those of isolated models; never 0.
    fn stream(&self) -> u64;

    /// How long a backend waits for a client that reads nothing.
    fn timeout(&self) -> Duration;

    /// The limit is reached.
    fn is_full(&self) -> bool {
        let UnreadBacklog { bytes, limit, .. } = self.backlog();
        bytes >= limit
    }
}
