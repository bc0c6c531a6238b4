//! An instance that its own thread and network threads run in turn, never two at a time.

use super::debt::{FAST_BATCH_NS, SlowBatchDebt};
use super::postponement::Postponement;
use super::{InlineInstance, InlineRun};
use crate::{RequestBatch, RequestQueue};
use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, Weak};
use trtserver_base::clock::now_ns;

/// A thread that runs an instance inline executes later requests too, until its own response has
/// waited this long.
const MAX_RUN_NS: u64 = 30_000;
/// The same where another process executes. A shorter run would leave more batches to the
/// instance's own thread, which then competes with the network threads and that process for the
/// processors: 16 callers on two of them get 5 % fewer responses with 30 µs.
const MAX_REMOTE_RUN_NS: u64 = 200_000;

/// A backend instance that may be executed on any thread.
pub trait InstanceExecutor: Send {
    /// Executes what was taken from the queue; the backend may respond later. The thread must not
    /// wait long unless it `may_wait`.
    fn execute(&mut self, batch: &mut RequestBatch, may_wait: bool);

    /// Whether another process executes the batches.
    fn is_remote(&self) -> bool;

    /// Whether another process executes the batches, and accepts a further one before it has
    /// responded.
    fn accepts_ahead(&self) -> bool;

    /// Follows [`InstanceExecutor::execute`]. Delivers the responses of another process, and
    /// returns the time that its last execution took. If `more`, a further batch is executed next:
    /// only responses that have arrived are delivered, and no other thread is notified of later
    /// ones.
    fn collect(&mut self, more: bool) -> Option<u64>;

    /// Whether the backend has few enough outstanding requests to accept another batch.
    fn has_capacity(&self) -> bool;

    /// Blocks until [`InstanceExecutor::has_capacity`].
    fn wait_for_capacity(&mut self);
}

/// An instance that one thread at a time runs: its own thread, or a network thread inline.
pub struct SharedInstance<E> {
    debt: SlowBatchDebt,
    postponement: Postponement,
    /// Locked by the thread that the queue lets run the instance, so without contention. `None`
    /// once the instance's own thread ends: the executor must be dropped there.
    inner: Mutex<Option<InlineState<E>>>,
}

struct InlineState<E> {
    /// Batch that inline runs reuse.
    batch: RequestBatch,
    executor: E,
}

impl<E: InstanceExecutor + 'static> SharedInstance<E> {
    /// Serves `queue` as instance number `ordinal` until it is closed and empty, on this thread and
    /// inline. Returns the executor.
    pub fn serve(queue: Arc<RequestQueue>, ordinal: usize, executor: E) -> Option<E> {
        let inner = Mutex::new(Some(InlineState { batch: RequestBatch::default(), executor }));
        let shared = Arc::new(Self {
            debt: SlowBatchDebt::default(),
            postponement: Postponement::default(),
            inner,
        });
        let weak: Weak<Self> = Arc::downgrade(&shared);
        queue.allow_inline(ordinal, weak);
        let mut batch = RequestBatch::default();
        while queue.take(ordinal, &mut batch) {
            if let Some(InlineState { executor, .. }) = shared.lock().as_mut() {
                let mut more = false;
                loop {
                    let (start, requests) = (now_ns(), batch.requests.len());
                    executor.execute(&mut batch, !more);
                    more = executor.accepts_ahead() && queue.take_ready(ordinal, &mut batch);
                    let took = executor.collect(more);
                    let took = took.unwrap_or_else(|| now_ns().saturating_sub(start));
                    shared.debt.record(took);
                    shared.postponement.record(requests, took);
                    if !more {
                        break;
                    }
                }
                executor.wait_for_capacity();
            }
        }
        let inner = shared.lock().take();
        inner.map(|inner| inner.executor)
    }

    fn lock(&self) -> MutexGuard<'_, Option<InlineState<E>>> {
        self.inner.lock()
    }
}

impl<E: InstanceExecutor + 'static> InlineInstance for SharedInstance<E> {
    fn is_fast(&self) -> bool {
        self.debt.is_low()
    }

    fn gains_by_waiting(&self) -> bool {
        self.postponement.pays()
    }

    fn run(&self, mut run: InlineRun<'_>, mut now: u64) {
        let mut inner = self.lock();
        let Some(InlineState { batch, executor }) = inner.as_mut() else { return };
        let end = now + if executor.is_remote() { MAX_REMOTE_RUN_NS } else { MAX_RUN_NS };
        let mut taken = run.next_batch(now, batch);
        while taken {
            let (start, requests) = (now, batch.requests.len());
            executor.execute(batch, false);
            let ahead = executor.accepts_ahead() && now_ns() <= end;
            taken = ahead && run.take_ready(batch);
            let took = executor.collect(taken);
            now = now_ns();
            let outstanding = !taken && !executor.has_capacity();
            let ran_ns = took.unwrap_or_else(|| now.saturating_sub(start));
            self.postponement.record(requests, ran_ns);
            self.debt.record(match took {
                // Its own thread waits as well as this one.
                Some(took) if outstanding => took.max(2 * FAST_BATCH_NS),
                // Only the instance's own thread may wait for a backend that responds later.
                None if outstanding => u64::MAX,
                _ => ran_ns,
            });
            if !taken {
                if outstanding || now > end {
                    return run.stop(outstanding, batch);
                }
                taken = run.next_batch(now, batch);
            }
        }
    }

    fn wait_for_capacity(&self) {
        if let Some(InlineState { executor, .. }) = self.lock().as_mut() {
            executor.wait_for_capacity();
        }
    }
}

#[cfg(test)]
#[path = "instance_tests.rs"]
mod tests;
