//! Polls a connection that has woken itself once more without going through the runtime, up to the repoll limit.
//!
//! hyper's connection and the body of its request are one task and wake each other. Left to the runtime, each request would
//! put the task into a run queue and wake another worker thread to steal it.

use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Polls in a row, after which other tasks get their turn.
const REPOLL_LIMIT: usize = 4;

/// Polls one future, always the same one.
pub struct Repoll {
    wakeups: Arc<Wakeups>,
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
    /// Polls until the future does not wake itself, or the limit is reached: then its task is woken.
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
    /// It was woken since.
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

    /// A wake may arrive between the last poll and this store, while `polling` was still true: it is passed on here.
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
