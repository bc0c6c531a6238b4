//! When the last user of a version is gone: its requests, its instances, its backend's model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Closes once, when the last [`Open`] of it is dropped.
#[derive(Default)]
pub struct Gate {
    closed: AtomicBool,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Gate {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Waits until it is closed; false when that took longer than `limit`.
    pub fn wait(&self, limit: Duration) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.rung.wait_timeout_while(lock, limit, |()| !self.is_closed());
        self.is_closed()
    }
}

/// Held by everything that keeps a version open.
pub struct Open(Arc<Gate>);

impl Open {
    pub fn new(gate: &Arc<Gate>) -> Arc<Self> {
        Arc::new(Self(Arc::clone(gate)))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _lock = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.closed.store(true, Ordering::Release);
        self.0.rung.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_with_the_last_user() {
        let gate = Gate::new();
        let open = Open::new(&gate);
        let other = Arc::clone(&open);
        drop(open);
        assert!(!gate.wait(Duration::ZERO));
        let waiting = std::thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.wait(Duration::from_secs(30))
        });
        drop(other);
        assert!(waiting.join().unwrap() && gate.is_closed());
    }
}
