//! One thread that rings queues at the times they ask for: timeouts that nobody else would notice.
//!
//! Instances keep the time of forming batches themselves; this thread is for what must happen while all of
//! them are busy: requests whose time in the queue is up, sequences that fell silent.

use crate::clock::now_ns;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Something that wants to be called at a time.
pub trait Alarm: Send + Sync {
    fn ring(&self);
}

/// Calls `whom` at `at_ns`, or a little later. Someone who is gone by then is forgotten.
pub fn at(at_ns: u64, whom: Weak<dyn Alarm>) {
    static TIMER: OnceLock<Timer> = OnceLock::new();
    let mut started = false;
    let timer = TIMER.get_or_init(|| {
        started = true;
        Timer::default()
    });
    if started
        && let Err(e) = std::thread::Builder::new().name("timer".into()).spawn(|| timer.run())
    {
        // Without it, late requests wait for an idle instance; nothing is lost.
        tracing::error!("no thread for timeouts could be started: {e}");
    }
    let mut state = timer.lock();
    state.number += 1;
    let number = state.number;
    let sooner = state.due.peek().is_none_or(|Reverse(first)| at_ns < first.at_ns);
    state.due.push(Reverse(Due { at_ns, number, whom }));
    drop(state);
    if sooner {
        timer.changed.notify_one();
    }
}

#[derive(Default)]
struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: BinaryHeap<Reverse<Due>>,
    /// Of the last entry: makes entries of the same time comparable.
    number: u64,
}

struct Due {
    at_ns: u64,
    number: u64,
    whom: Weak<dyn Alarm>,
}

impl Timer {
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = now_ns();
            match state.due.peek().map(|Reverse(first)| first.at_ns) {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) if at > now => {
                    let wait = Duration::from_nanos(at - now);
                    let waited = self.changed.wait_timeout(state, wait);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    let due = state.due.pop();
                    drop(state);
                    if let Some(whom) = due.and_then(|Reverse(due)| due.whom.upgrade()) {
                        whom.ring();
                    }
                    state = self.lock();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};

    struct Bell(u32, Sender<u32>);

    impl Alarm for Bell {
        fn ring(&self) {
            let _ = self.1.send(self.0);
        }
    }

    #[test]
    fn rings_in_order_of_time_and_not_for_the_gone() {
        let (sender, rung) = channel();
        let bells: Vec<Arc<dyn Alarm>> =
            (0..4).map(|i| Arc::new(Bell(i, sender.clone())) as Arc<dyn Alarm>).collect();
        let now = now_ns();
        for (bell, ms) in bells.iter().zip([30, 10, 20, 0]) {
            at(now + ms * 1_000_000, Arc::downgrade(bell));
        }
        let gone: Arc<dyn Alarm> = Arc::new(Bell(9, sender));
        at(now + 5_000_000, Arc::downgrade(&gone));
        drop(gone);
        let order: Vec<u32> = (0..4).map(|_| rung.recv().unwrap()).collect();
        assert_eq!(order, [3, 1, 2, 0]);
        assert!(rung.try_recv().is_err());
    }
}
