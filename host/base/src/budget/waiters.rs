//! Requests that wait for memory, first come first served.

use super::{MAX_WAIT, MemoryBudget, MemoryReservation};
use crate::ledger::MemoryTag;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::oneshot;

/// First-come-first-served queue of the reservations that wait for memory.
pub struct BudgetWaiters {
    /// Length of `queue`, so that giving memory back takes no lock while none wait.
    len: AtomicUsize,
    queue: Mutex<VecDeque<BudgetWaiter>>,
}

struct BudgetWaiter {
    bytes: usize,
    tag: MemoryTag,
    granted: oneshot::Sender<MemoryReservation>,
}

impl BudgetWaiters {
    pub const fn new() -> Self {
        Self { len: AtomicUsize::new(0), queue: Mutex::new(VecDeque::new()) }
    }

    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Waits until `bytes` are granted; `None` after [`MAX_WAIT`].
    pub async fn wait(
        &self,
        budget: &'static MemoryBudget,
        bytes: usize,
        tag: MemoryTag,
    ) -> Option<MemoryReservation> {
        let (granted, receiver) = oneshot::channel();
        {
            let mut queue = self.queue.lock();
            queue.push_back(BudgetWaiter { bytes, tag, granted });
            self.len.store(queue.len(), Ordering::SeqCst);
        }
        // Memory may have been given back before the length was stored, when its owner saw an empty
        // queue.
        self.serve(budget);
        // A reservation that is granted when the time is over is given back by the channel.
        tokio::time::timeout(MAX_WAIT, receiver).await.ok()?.ok()
    }

    /// Grants memory to the first waiters, as far as it suffices. Called after memory was given
    /// back.
    ///
    /// A waiter stores the length and then looks at the memory in use; the caller changes the
    /// memory in use and then looks at the length. Both are SeqCst, so one of the two sees the
    /// other's store.
    pub fn serve(&self, budget: &'static MemoryBudget) {
        if self.len.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut unclaimed = Vec::new();
        let mut queue = self.queue.lock();
        while let Some(first) = queue.front() {
            let cancelled = first.granted.is_closed();
            if !cancelled && !budget.take(first.bytes, first.tag) {
                break;
            }
            if let Some(BudgetWaiter { bytes, tag, granted }) = queue.pop_front()
                && !cancelled
            {
                // Cancelled meanwhile: dropped below, because giving back takes the lock.
                unclaimed.extend(granted.send(MemoryReservation { budget, bytes, tag }).err());
            }
        }
        self.len.store(queue.len(), Ordering::SeqCst);
        drop(queue);
        drop(unclaimed);
    }
}
