//! Limit of the responses of a nested request to a decoupled model that its handler has not
//! received: the model waits above it.

use crate::host_state::HOST;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use trtserver_base::error::{Code, Error, Result};
use trtserver_request::unread::{UnreadAccount, UnreadBacklog};
use trtserver_request::{CancelToken, StreamLimit, UnreadResponse};

/// Bytes that may wait for a handler.
const LIMIT: u64 = 8 << 20;

/// A handler that receives nothing for so long ends the request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often a waiting backend looks for a cancellation.
const LOOK: Duration = Duration::from_millis(20);

/// Begins the numbers of nested streams; those of clients count up from 1.
const FIRST: u64 = 1 << 63;

pub struct NestedStream {
    number: u64,
    unread: Mutex<UnreadBacklog>,
    received: Condvar,
}

impl NestedStream {
    pub fn new() -> Arc<Self> {
        let unread = Mutex::new(UnreadBacklog { bytes: 0, responses: 0, limit: LIMIT });
        let number = FIRST | HOST.next_id.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { number, unread, received: Condvar::new() })
    }
}

impl StreamLimit for NestedStream {
    fn admit(
        self: Arc<Self>,
        bytes: usize,
        wait: bool,
        cancel: &CancelToken,
    ) -> Result<UnreadResponse> {
        let began = Instant::now();
        let mut unread = self.unread.lock();
        while unread.bytes >= unread.limit {
            if cancel.is_cancelled() {
                return Err(Error::new(Code::Cancelled, "request was cancelled"));
            }
            if !wait || began.elapsed() >= TIMEOUT {
                return Err(Error::new(
                    Code::ResourceExhausted,
                    format!(
                        "{} bytes of this nested request were not received by its handler, the limit is {LIMIT} bytes",
                        unread.bytes
                    ),
                ));
            }
            self.received.wait_for(&mut unread, LOOK);
        }
        unread.bytes += bytes as u64;
        unread.responses += 1;
        drop(unread);
        Ok(UnreadResponse::new(self, bytes))
    }

    fn backlog(&self) -> UnreadBacklog {
        *self.unread.lock()
    }

    fn stream(&self) -> u64 {
        self.number
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}

impl UnreadAccount for NestedStream {
    fn release(&self, bytes: usize, _delivered: bool) {
        let mut unread = self.unread.lock();
        unread.bytes = unread.bytes.saturating_sub(bytes as u64);
        unread.responses = unread.responses.saturating_sub(1);
        drop(unread);
        self.received.notify_all();
    }
}
