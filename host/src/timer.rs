//! One thread that rings at the times it was asked for: what nobody else would notice. It sleeps until then.
//!
//! Instances keep the time of forming batches themselves; this thread is for what must happen while all of
//! them are busy (requests whose time in the queue is up, sequences that fell silent) or idle (memory that is
//! given back).

use crate::clock::now_ns;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::sync::{OnceLock, Weak};
use std::time::Duration;

/// Something that wants to be called at a time.
pub trait DeadlineCallback: Send + Sync {
    fn on_deadline(&self);
}

/// Calls `whom` at `at_ns`, or a little later, and no more at the time that it asked for before. Someone who is gone by
/// then is forgotten.
pub fn schedule(at_ns: u64, whom: Weak<dyn DeadlineCallback>) {
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
    if timer.lock().set(at_ns, whom) {
        timer.changed.notify_one();
    }
}

#[derive(Default)]
struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

/// Who rings, by address: a weak pointer keeps it from being used again.
type Address = usize;

/// One entry for each that waits. A second one would never end: whoever rings asks for the next time.
#[derive(Default)]
struct State {
    due: BTreeMap<(u64, Address), Weak<dyn DeadlineCallback>>,
    times: HashMap<Address, u64>,
}

impl State {
    /// True when nothing is due sooner.
    fn set(&mut self, at_ns: u64, whom: Weak<dyn DeadlineCallback>) -> bool {
        let address = whom.as_ptr().addr();
        if let Some(before) = self.times.insert(address, at_ns) {
            self.due.remove(&(before, address));
        }
        self.due.insert((at_ns, address), whom);
        self.due.first_key_value().is_some_and(|(first, _)| *first == (at_ns, address))
    }

    fn next(&self) -> Option<u64> {
        self.due.keys().next().map(|(at_ns, _)| *at_ns)
    }

    fn pop(&mut self) -> Option<Weak<dyn DeadlineCallback>> {
        let ((_, address), whom) = self.due.pop_first()?;
        self.times.remove(&address);
        Some(whom)
    }
}

impl Timer {
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = now_ns();
            match state.next() {
                None => state = self.changed.wait(state),
                Some(at) if at > now => {
                    let wait = Duration::from_nanos(at - now);
                    let waited = self.changed.wait_timeout(state, wait);
                    state = waited.0;
                }
                Some(_) => {
                    let due = state.pop();
                    drop(state);
                    if let Some(whom) = due.and_then(|due| due.upgrade()) {
                        whom.on_deadline();
                    }
                    state = self.lock();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
#[path = "timer_tests.rs"]
mod tests;
