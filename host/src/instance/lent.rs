//! An instance that other threads may execute while its own one sleeps: who brings a request to a quick model runs it himself.

use super::worker::{Desk, Worker};
use crate::clock::now_ns;
use crate::plugin::AnyThread;
use crate::scheduler::{Lendable, Queue, Work};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
    desk: Desk,
    /// Of the borrowers.
    work: Work,
    worker: Worker,
}

/// Serves on the instance's thread, and on those that borrow it.
pub(super) fn serve(worker: Worker, instance: AnyThread) {
    let (queue, ordinal) = (Arc::clone(&worker.queue), worker.ordinal);
    let _lost = worker.lost();
    let body = Body { instance, desk: Desk::default(), work: Work::default(), worker };
    let lent = Arc::new(Lent {
        queue: Arc::clone(&queue),
        ordinal,
        pace: Pace::default(),
        body: Mutex::new(Some(body)),
    });
    let whom: Weak<Lent> = Arc::downgrade(&lent);
    queue.lend(ordinal, whom);
    let mut work = Work::default();
    while queue.take(ordinal, &mut work) {
        if let Some(body) = lent.lock().as_mut() {
            let start = now_ns();
            body.run(&mut work);
            lent.pace.note(now_ns().saturating_sub(start));
            body.wait_for_room();
        }
    }
    let body = lent.lock().take();
    if let Some(body) = body {
        body.worker.wait_for_the_rest(&body.desk.in_flight);
    }
}

impl Body {
    fn run(&mut self, work: &mut Work) {
        self.worker.run_batch(self.instance.get_mut(), &mut self.desk, work);
    }

    fn wait_for_room(&self) {
        self.desk.in_flight.wait_at_most(self.worker.most_owed(), None);
    }

    fn has_room(&self) -> bool {
        self.desk.in_flight.at_most(self.worker.most_owed())
    }
}

impl Lent {
    fn lock(&self) -> MutexGuard<'_, Option<Body>> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lendable for Lent {
    fn is_quick(&self) -> bool {
        self.pace.recent_ns.load(Ordering::Relaxed) <= QUICK_NS
    }

    fn work(&self, mut now: u64) {
        let end = now + PATIENCE_NS;
        let mut body = self.lock();
        let Some(body) = body.as_mut() else { return };
        let mut work = std::mem::take(&mut body.work);
        while self.queue.take_lent(self.ordinal, now, &mut work) {
            let start = now;
            body.run(&mut work);
            now = now_ns();
            let owes = !body.has_room();
            // A backend that answers later needs somebody who can wait for it.
            self.pace.note(if owes { 2 * QUICK_NS } else { now.saturating_sub(start) });
            if owes || now > end {
                self.queue.give_back(self.ordinal, owes);
                break;
            }
        }
        body.work = work;
    }

    fn wait_for_room(&self) {
        if let Some(body) = self.lock().as_ref() {
            body.wait_for_room();
        }
    }
}

/// How long batches take: the longest one, forgotten little by little, and not faster than it took. So a model that is slow
/// now and then, which holds up all calls of a connection, does so for [`QUICK_NS`] a batch in the mean.
struct Pace {
    recent_ns: AtomicU64,
}

impl Default for Pace {
    /// The first dozen is for the instance's own thread.
    fn default() -> Self {
        Self { recent_ns: AtomicU64::new(4 * QUICK_NS) }
    }
}

impl Pace {
    /// Called by whoever executes, one at a time.
    fn note(&self, ns: u64) {
        let recent = self.recent_ns.load(Ordering::Relaxed);
        self.recent_ns.store(ns.max(recent - (recent / 8).min(QUICK_NS)), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_batches_are_remembered_for_a_while() {
        let pace = Pace::default();
        let quick_after = |slow: u64| {
            pace.note(slow);
            (1..).find(|_| {
                pace.note(1000);
                pace.recent_ns.load(Ordering::Relaxed) <= QUICK_NS
            })
        };
        let table = [(0, 10), (QUICK_NS, 1), (4 * QUICK_NS, 11), (100 * QUICK_NS, 108)];
        for (slow, want) in table {
            assert_eq!(quick_after(slow), Some(want), "{slow} ns");
        }
    }
}
