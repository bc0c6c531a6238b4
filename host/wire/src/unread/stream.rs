//! Unread responses of one stream of v2 gRPC. A decoupled model waits while they reach the limit.

use super::ConnectionUnread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use trtserver_base::error::{Code, Error, Result};
use trtserver_request::CancelToken;
use trtserver_request::unread::{StreamLimit, UnreadAccount, UnreadBacklog, UnreadResponse};

/// How often a waiting backend looks for a cancellation, and for memory that other connections gave
/// back.
const LOOK: Duration = Duration::from_millis(50);

/// Responses and bytes that were sent on one stream and that its client has not read.
pub struct StreamUnread {
    number: u64,
    connection: Arc<ConnectionUnread>,
    bytes: AtomicUsize,
    responses: AtomicUsize,
    /// Responses that reached the stream. The others wait for a response of another request, in the
    /// order of their model.
    delivered: AtomicUsize,
    /// The stream has ended.
    closed: AtomicBool,
    /// [`ConnectionUnread::read`] when a backend gave up, else the maximum. Until the client reads,
    /// no backend waits.
    stalled_at: AtomicU64,
    /// The bytes fell below the limit.
    below_limit: Notify,
}

impl StreamUnread {
    /// `number` is of no other stream of the server.
    pub fn new(connection: Arc<ConnectionUnread>, number: u64) -> Arc<Self> {
        Arc::new(Self {
            number,
            connection,
            bytes: AtomicUsize::new(0),
            responses: AtomicUsize::new(0),
            delivered: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            stalled_at: AtomicU64::new(u64::MAX),
            below_limit: Notify::new(),
        })
    }

    fn limit(&self) -> usize {
        self.connection.limits.per_stream
    }

    /// Counts a response whose backend cannot be made to wait, whatever the stream's limit.
    ///
    /// # Errors
    /// The connection's limit is reached, or the memory budget is exhausted.
    pub fn count_response(self: &Arc<Self>, bytes: usize) -> Result<UnreadResponse> {
        self.connection.count(bytes)?;
        Ok(self.counted(bytes))
    }

    /// The guard of a response that is counted on the connection.
    fn counted(self: &Arc<Self>, bytes: usize) -> UnreadResponse {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        self.responses.fetch_add(1, Ordering::SeqCst);
        UnreadResponse::new(Arc::clone(self) as _, bytes)
    }

    /// Waits until the unread bytes fall below the limit. Returns at once if they did since the
    /// last call.
    pub async fn wait_below_limit(&self) {
        self.below_limit.notified().await;
    }

    /// The stream has ended: backends that wait are cancelled.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.connection.wake_senders();
    }

    /// The client can read nothing of the stream, or enough of it was read.
    fn has_space(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) < self.limit()
            || self.delivered.load(Ordering::SeqCst) == 0
    }

    fn full(&self, bytes: usize, why: &str) -> Error {
        Error::new(
            Code::ResourceExhausted,
            format!(
                "{why}: {} bytes of this stream are unread, the limit for a further response of {bytes} bytes is {} \
                 bytes (--max-unread-per-stream)",
                self.bytes.load(Ordering::SeqCst),
                self.limit()
            ),
        )
    }
}

impl StreamLimit for StreamUnread {
    fn admit(
        self: Arc<Self>,
        bytes: usize,
        wait: bool,
        cancel: &CancelToken,
    ) -> Result<UnreadResponse> {
        let (timeout, mut read, mut since) = (self.timeout(), self.connection.read(), None);
        loop {
            let closed = || self.closed.load(Ordering::SeqCst) || cancel.is_cancelled();
            if closed() {
                return Err(Error::new(Code::Cancelled, "request was cancelled"));
            }
            let before = self.connection.bytes();
            let refused = if self.has_space() {
                match self.connection.count(bytes) {
                    Ok(()) => return Ok(self.counted(bytes)),
                    Err(e) => e,
                }
            } else {
                self.full(bytes, "the client has not read earlier responses")
            };
            if !wait {
                return Err(refused);
            }
            let now = self.connection.read();
            if now != read {
                (read, since) = (now, None);
            }
            let stalled = self.stalled_at.load(Ordering::Relaxed) == read;
            if stalled || since.get_or_insert_with(Instant::now).elapsed() >= timeout {
                self.stalled_at.store(read, Ordering::Relaxed);
                return Err(
                    self.full(bytes, &format!("the client has read nothing for {timeout:?}"))
                );
            }
            let may_proceed = || closed() || (self.connection.bytes() < before && self.has_space());
            self.connection.wait(LOOK, may_proceed);
        }
    }

    fn backlog(&self) -> UnreadBacklog {
        UnreadBacklog {
            bytes: self.bytes.load(Ordering::Relaxed) as u64,
            responses: self.responses.load(Ordering::Relaxed) as u64,
            limit: self.limit() as u64,
        }
    }

    fn stream(&self) -> u64 {
        self.number
    }

    fn timeout(&self) -> Duration {
        self.connection.limits.timeout
    }
}

impl UnreadAccount for StreamUnread {
    fn release(&self, bytes: usize, delivered: bool) {
        self.responses.fetch_sub(1, Ordering::SeqCst);
        if delivered {
            self.delivered.fetch_sub(1, Ordering::SeqCst);
        }
        let before = self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        if before >= self.limit() && before - bytes < self.limit() {
            self.below_limit.notify_one();
        }
        self.connection.release(bytes);
    }

    fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
