//! Timer: one thread that calls back at scheduled times.
//!
//! Instances wait for batching delays themselves. This thread is for deadlines while all of them
//! are busy (queue timeouts, idle sequences) or idle (memory that is returned to the system). It
//! sleeps until the next deadline.

use crate::clock::now_ns;
use crate::host_policy::use_process_cores;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::sync::Weak;
use std::time::Duration;

/// Called by the timer thread.
pub trait DeadlineCallback: Send + Sync {
    fn on_deadline(&self);
}

/// Deadlines, and the thread that waits for them.
#[derive(Default)]
pub struct DeadlineTimer {
    state: Mutex<TimerState>,
    changed: Condvar,
}

/// Identifies a callback. Its weak pointer keeps the address from being reused.
type Address = usize;

/// One deadline for each callback. More would accumulate, since each call schedules the next one.
#[derive(Default)]
struct TimerState {
    deadlines: BTreeMap<(u64, Address), Weak<dyn DeadlineCallback>>,
    times: HashMap<Address, u64>,
    /// The thread was started.
    started: bool,
}

impl TimerState {
    /// True if this is the earliest deadline.
    fn set(&mut self, at_ns: u64, callback: Weak<dyn DeadlineCallback>) -> bool {
        let address = callback.as_ptr().addr();
        if let Some(before) = self.times.insert(address, at_ns) {
            self.deadlines.remove(&(before, address));
        }
        self.deadlines.insert((at_ns, address), callback);
        self.deadlines.first_key_value().is_some_and(|(first, _)| *first == (at_ns, address))
    }

    fn next(&self) -> Option<u64> {
        self.deadlines.keys().next().map(|(at_ns, _)| *at_ns)
    }

    fn pop(&mut self) -> Option<Weak<dyn DeadlineCallback>> {
        let ((_, address), callback) = self.deadlines.pop_first()?;
        self.times.remove(&address);
        Some(callback)
    }
}

impl DeadlineTimer {
    /// A timer that lives as long as the process. Its thread starts with the first deadline.
    pub fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    /// Calls `callback` at `at_ns` or a little later. This replaces the time that was scheduled for
    /// it before. A callback that is dropped by then is not called.
    pub fn schedule(&'static self, at_ns: u64, callback: Weak<dyn DeadlineCallback>) {
        let mut state = self.lock();
        if state.set(at_ns, callback) {
            self.changed.notify_one();
        }
        if !std::mem::replace(&mut state.started, true)
            && let Err(e) = std::thread::Builder::new().name("timer".into()).spawn(|| self.run())
        {
            // Then requests time out only when an instance is idle.
            tracing::error!("the timer thread did not start: {e}");
        }
    }

    fn run(&self) {
        use_process_cores();
        let mut state = self.lock();
        loop {
            let now = now_ns();
            match state.next() {
                None => self.changed.wait(&mut state),
                Some(at) if at > now => {
                    let wait = Duration::from_nanos(at - now);
                    self.changed.wait_for(&mut state, wait);
                }
                Some(_) => {
                    let callback = state.pop();
                    drop(state);
                    if let Some(callback) = callback.and_then(|callback| callback.upgrade()) {
                        callback.on_deadline();
                    }
                    state = self.lock();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, TimerState> {
        self.state.lock()
    }
}

#[cfg(test)]
#[path = "timer_tests.rs"]
mod tests;
