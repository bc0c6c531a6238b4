//! A connection that wakes itself while it is polled is polled once more, at once.
//!
//! hyper's connection and the body of its request wake each other although both are of one task. Left to the runtime that is a
//! place in its queue, and another thread called to look into it: for each request.

use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// So often in one turn; then others have theirs.
const REPOLL_LIMIT: usize = 4;

/// The turns of one future, always the same one.
pub struct Repoll {
    wakeups: Arc<Wakeups>,
    /// Of `wakeups`.
    waker: Waker,
}

impl Default for Repoll {
    fn default() -> Self {
        let wakeups = Arc::new(Wakeups::default());
        let waker = Waker::from(Arc::clone(&wakeups));
        Self { wakeups, waker }
    }
}

impl Repoll {
    /// Polls as long as the future wakes itself.
    pub fn poll<T>(
        &self,
        cx: &Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.wakeups.begin(cx.waker());
        for _ in 0..REPOLL_LIMIT {
            self.wakeups.woken.store(false, Ordering::SeqCst);
            let polled = poll(&mut Context::from_waker(&self.waker));
            if polled.is_ready() || !self.wakeups.woken.load(Ordering::SeqCst) {
                self.wakeups.end();
                return polled;
            }
        }
        self.wakeups.end();
        Poll::Pending
    }
}

#[derive(Default)]
struct Wakeups {
    task: Mutex<Option<Waker>>,
    /// The future is being polled.
    polling: AtomicBool,
    /// Somebody woke it meanwhile.
    woken: AtomicBool,
}

impl Wakeups {
    fn begin(&self, task: &Waker) {
        let mut known = self.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
        drop(known);
        self.polling.store(true, Ordering::SeqCst);
    }

    /// Who woke it after it was polled for the last time is heard.
    fn end(&self) {
        self.polling.store(false, Ordering::SeqCst);
        self.pass_on();
    }

    fn pass_on(&self) {
        if self.woken.swap(false, Ordering::SeqCst) {
            let task = self.task.lock().clone();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if !self.polling.load(Ordering::SeqCst) {
            self.pass_on();
        }
    }
}

#[cfg(test)]
#[path = "repoll_tests.rs"]
mod tests;
