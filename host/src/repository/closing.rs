//! When the last user of a version is gone: its requests, its instances, its backend's model.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

/// Closed when nobody has an [`Open`] of it.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: usize,
    /// To be logged when it closes.
    farewell: Option<String>,
}

impl Gate {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn is_closed(&self) -> bool {
        self.state().open == 0
    }

    /// Waits until it is closed; false when that took longer than `limit`.
    pub fn wait(&self, limit: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), limit, |state| state.open > 0);
        waited.0.open == 0
    }

    /// What the log says when the last user is gone; at once if none is there.
    pub fn farewell(&self, text: String) {
        let mut state = self.state();
        state.farewell = Some(text);
        state.say();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn say(&mut self) {
        if self.open == 0
            && let Some(text) = self.farewell.take()
        {
            tracing::info!("{text}");
        }
    }
}

/// Held by everything that keeps a version open.
pub struct Open(Arc<Gate>);

impl Open {
    pub fn new(gate: &Arc<Gate>) -> Arc<Self> {
        gate.state().open += 1;
        Arc::new(Self(Arc::clone(gate)))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        state.say();
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
