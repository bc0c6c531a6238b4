//! Unread bytes of one connection, all its streams and calls together. They are drawn from the
//! memory budget.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use trtserver_base::budget::{MemoryReservation, SMALL, request_memory};
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_config::UnreadLimits;
use trtserver_request::unread::{UnreadAccount, UnreadResponse};

/// Memory is drawn from the budget in steps of this size, and given back in larger ones.
const STEP: usize = 64 << 10;
const GIVE_BACK: usize = 16 * STEP;

/// Bytes that were sent on one connection and that its client has not read, and their limits.
pub struct ConnectionUnread {
    pub limits: UnreadLimits,
    bytes: AtomicUsize,
    /// All bytes that were ever read: shows whether the client reads.
    read: AtomicU64,
    drawn: Mutex<MemoryReservation>,
    /// `drawn.bytes()`.
    drawn_bytes: AtomicUsize,
    /// Backends that wait in [`ConnectionUnread::wait`].
    senders: AtomicUsize,
    sender_lock: Mutex<()>,
    sender_wakeup: Condvar,
    /// The bytes fell below half of the limit.
    below_half: Notify,
}

impl ConnectionUnread {
    pub fn new(limits: UnreadLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            bytes: AtomicUsize::new(0),
            read: AtomicU64::new(0),
            drawn: Mutex::new(request_memory().empty(LedgerHolder::UnreadResponse)),
            drawn_bytes: AtomicUsize::new(0),
            senders: AtomicUsize::new(0),
            sender_lock: Mutex::new(()),
            sender_wakeup: Condvar::new(),
            below_half: Notify::new(),
        })
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Further calls of the connection wait: half of the limit is left for the responses to earlier
    /// ones.
    pub fn is_half_full(&self) -> bool {
        self.bytes() >= self.limits.per_connection / 2
    }

    /// Waits until less than half of the limit is unread.
    pub async fn wait_below_half(self: Arc<Self>) {
        loop {
            let notified = self.below_half.notified();
            if !self.is_half_full() {
                return;
            }
            notified.await;
        }
    }

    /// Counts `bytes`, until [`ConnectionUnread::release`].
    ///
    /// # Errors
    /// They exceed the limit together with what is unread already, or the memory budget is
    /// exhausted.
    pub fn count(&self, bytes: usize) -> Result<()> {
        let sum = self.bytes.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let limit = self.limits.per_connection;
        let counted = if sum > limit && sum > bytes {
            Err(Error::new(
                Code::ResourceExhausted,
                format!(
                    "the client does not read its responses: {} bytes of this connection are unread, this response \
                     of {bytes} bytes would exceed the limit of {limit} bytes (--max-unread-per-connection)",
                    sum - bytes
                ),
            ))
        } else {
            self.draw(sum)
        };
        if counted.is_err() {
            self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        }
        counted
    }

    /// As [`ConnectionUnread::count`], with a guard that releases the bytes.
    pub fn count_response(self: &Arc<Self>, bytes: usize) -> Result<UnreadResponse> {
        self.count(bytes)?;
        Ok(UnreadResponse::new(Arc::clone(self) as _, bytes))
    }

    /// Counts bytes that exist in any case.
    pub fn count_unlimited(&self, bytes: usize) {
        let sum = self.bytes.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let _ = self.draw(sum);
    }

    /// Draws memory for `unread` bytes from the budget, except for the first [`SMALL`] bytes of a
    /// connection.
    fn draw(&self, unread: usize) -> Result<()> {
        let needed = unread.saturating_sub(SMALL);
        if needed <= self.drawn_bytes.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut drawn = self.drawn.lock();
        let missing = needed.saturating_sub(drawn.bytes());
        if missing > 0 {
            drawn.try_grow(missing.next_multiple_of(STEP)).map_err(|e| e.refuse())?;
            self.drawn_bytes.store(drawn.bytes(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// `bytes` were read or discarded.
    pub fn release(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        let left = before - bytes;
        let surplus = self.drawn_bytes.load(Ordering::Relaxed).saturating_sub(left);
        if surplus >= GIVE_BACK || (left == 0 && surplus > 0) {
            let mut drawn = self.drawn.lock();
            drawn.shrink_to(self.bytes.load(Ordering::SeqCst).saturating_sub(SMALL));
            self.drawn_bytes.store(drawn.bytes(), Ordering::Relaxed);
        }
        let half = self.limits.per_connection / 2;
        if before >= half && left < half {
            self.below_half.notify_waiters();
        }
        self.wake_senders();
    }

    /// Number of bytes that were read since the connection was opened.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Blocks a backend until responses were read, for at most `time`. It may have to wait once
    /// more.
    pub fn wait(&self, time: Duration, may_proceed: impl Fn() -> bool) {
        self.senders.fetch_add(1, Ordering::SeqCst);
        let mut lock = self.sender_lock.lock();
        if !may_proceed() {
            self.sender_wakeup.wait_for(&mut lock, time);
        }
        self.senders.fetch_sub(1, Ordering::SeqCst);
    }

    /// Number of backends that wait.
    #[cfg(test)]
    pub fn senders(&self) -> usize {
        self.senders.load(Ordering::SeqCst)
    }

    /// Wakes the backends that wait.
    pub fn wake_senders(&self) {
        if self.senders.load(Ordering::SeqCst) > 0 {
            // A sender has checked its condition under the lock before it waits.
            drop(self.sender_lock.lock());
            self.sender_wakeup.notify_all();
        }
    }
}

impl UnreadAccount for ConnectionUnread {
    fn release(&self, bytes: usize, _: bool) {
        ConnectionUnread::release(self, bytes);
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
