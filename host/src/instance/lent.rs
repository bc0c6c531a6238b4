//! An instance that other threads may execute while its own one sleeps: who brings a request to a quick model runs it himself.

use super::worker::{BatchContext, Worker};
use crate::clock::now_ns;
use crate::plugin::AnyThread;
use crate::scheduler::{Batch, Lendable, Queue};
use crate::sync::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// To wake another thread costs 5 to 30 µs of CPU time and latency. Batches well above that gain little from being executed by
/// a thread of the network, and keep it from its connections.
const QUICK_NS: u64 = 100_000;
/// Who borrows an instance executes for others too, as long as that does not hold up his own answer for longer.
const PATIENCE_NS: u64 = 30_000;

/// What the instance's thread and the borrowers share.
struct Lent {
    queue: Arc<Queue>,
    ordinal: usize,
    pace: Pace,
    /// Locked by whom the queue has given the instance, so nobody waits for it. Empty when the thread has ended.
    body: Mutex<Option<Body>>,
}

/// Dropped in this order, on the instance's thread.
struct Body {
    instance: AnyThread,
    context: BatchContext,
    /// Of the borrowers.
    batch: Batch,
    worker: Worker,
}

/// Serves on the instance's thread, and on those that borrow it.
pub(super) fn serve(worker: Worker, instance: AnyThread) {
    let (queue, ordinal) = (Arc::clone(&worker.queue), worker.ordinal);
    let _lost = worker.lost();
    let body = Body { instance, context: BatchContext::default(), batch: Batch::default(), worker };
    let lent = Arc::new(Lent {
        queue: Arc::clone(&queue),
        ordinal,
        pace: Pace::default(),
        body: Mutex::new(Some(body)),
    });
    let whom: Weak<Lent> = Arc::downgrade(&lent);
    queue.lend(ordinal, whom);
    let mut batch = Batch::default();
    while queue.take(ordinal, &mut batch) {
        if let Some(body) = lent.lock().as_mut() {
            let start = now_ns();
            body.run(&mut batch);
            lent.pace.note(now_ns().saturating_sub(start));
            body.wait_for_room();
        }
    }
    let body = lent.lock().take();
    if let Some(body) = body {
        body.worker.drain_outstanding(&body.context.outstanding);
    }
}

impl Body {
    fn run(&mut self, batch: &mut Batch) {
        self.worker.run_batch(self.instance.get_mut(), &mut self.context, batch);
    }

    fn wait_for_room(&self) {
        self.context.outstanding.wait_at_most(self.worker.max_outstanding(), None);
    }

    fn has_room(&self) -> bool {
        self.context.outstanding.at_most(self.worker.max_outstanding())
    }
}

impl Lent {
    fn lock(&self) -> MutexGuard<'_, Option<Body>> {
        self.body.lock()
    }
}

impl Lendable for Lent {
    fn is_quick(&self) -> bool {
        self.pace.is_quick()
    }

    fn work(&self, mut now: u64) {
        let end = now + PATIENCE_NS;
        let mut body = self.lock();
        let Some(body) = body.as_mut() else { return };
        let mut batch = std::mem::take(&mut body.batch);
        while self.queue.take_lent(self.ordinal, now, &mut batch) {
            let start = now;
            body.run(&mut batch);
            now = now_ns();
            let owes = !body.has_room();
            // A backend that answers later needs somebody who can wait for it.
            self.pace.note(if owes { u64::MAX } else { now.saturating_sub(start) });
            if owes || now > end {
                self.queue.give_back(self.ordinal, owes);
                break;
            }
        }
        body.batch = batch;
    }

    fn wait_for_room(&self) {
        if let Some(body) = self.lock().as_ref() {
            body.wait_for_room();
        }
    }
}

/// Whether an instance is lent: on average a batch may take [`QUICK_NS`]. What batches take beyond that is remembered, and paid
/// off by the quick ones that follow.
struct Pace {
    debt_ns: AtomicU64,
}

/// Debt with which an instance is still lent: a thread that the system interrupts once or twice says nothing about its model.
const SPARE_NS: u64 = 50 * QUICK_NS;
/// No batch is remembered for longer than ten thousand.
const MOST_NS: u64 = 10_000 * QUICK_NS;

impl Default for Pace {
    /// The first twenty batches are for the instance's own thread.
    fn default() -> Self {
        Self { debt_ns: AtomicU64::new(SPARE_NS + 20 * QUICK_NS) }
    }
}

impl Pace {
    /// Called by whoever executes, one at a time.
    fn note(&self, ns: u64) {
        let debt = self.debt_ns.load(Ordering::Relaxed).saturating_add(ns);
        self.debt_ns.store(debt.saturating_sub(QUICK_NS).min(MOST_NS), Ordering::Relaxed);
    }

    fn is_quick(&self) -> bool {
        self.debt_ns.load(Ordering::Relaxed) <= SPARE_NS
    }
}

#[cfg(test)]
#[path = "lent_tests.rs"]
mod tests;
