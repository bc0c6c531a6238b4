//! Cancellation of a request: a flag that backends poll, and an observer that is notified.

use parking_lot::Mutex;
use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};

/// Is notified of cancelled requests: the queue that holds a request, or the backend instance that
/// executes it.
pub trait CancelObserver: Send + Sync {
    /// The request registered with `ticket` was cancelled. Must not block. The request may have
    /// left the observer by now: a queue is also notified of requests that an instance has already
    /// taken.
    fn cancelled(&self, ticket: u64);
}

/// One per request, in its [`super::Responder`].
#[derive(Default)]
pub struct CancelToken {
    /// Non-zero once cancelled. Backends read it through [`CancelToken::flag`].
    flag: AtomicU32,
    /// The latest observer and the request's ticket there.
    observer: Mutex<Option<(Weak<dyn CancelObserver>, u64)>>,
}

impl CancelToken {
    /// Sets the flag and notifies the observer, once.
    pub fn cancel(&self) {
        self.flag.store(1, Ordering::SeqCst);
        let observer = self.observer.lock().take();
        // Without the lock: a queue that is notified finishes the request.
        if let Some((observer, ticket)) = observer
            && let Some(observer) = observer.upgrade()
        {
            observer.cancelled(ticket);
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed) != 0
    }

    /// Notifies `observer` in place of the one before when the request is cancelled. Returns true
    /// if it already was; the caller must handle that, since `observer` may not be notified.
    pub fn notify(&self, observer: Weak<dyn CancelObserver>, ticket: u64) -> bool {
        // `cancel` sets the flag before it looks for an observer. So either it finds this one, or
        // the flag is seen here.
        *self.observer.lock() = Some((observer, ticket));
        self.flag.load(Ordering::SeqCst) != 0
    }

    /// Address of the flag, valid as long as the token.
    pub fn flag(&self) -> *const u32 {
        self.flag.as_ptr()
    }
}

#[cfg(test)]
#[path = "cancel_tests.rs"]
mod tests;
