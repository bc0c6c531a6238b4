//! Usage tracker of a version: reports when its last user is gone. Users are its requests, its instances and its
//! backend model.

use crate::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// Counts the [`UsageGuard`]s of one version.
#[derive(Default)]
pub struct UsageTracker {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    users: usize,
    log_when_unused: Option<String>,
}

impl UsageTracker {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn is_unused(&self) -> bool {
        self.state.lock().users == 0
    }

    /// Waits until no user is left; false if that took longer than `limit`.
    pub fn wait_until_unused(&self, limit: Duration) -> bool {
        let state = self.state.lock();
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.users > 0);
        waited.0.users == 0
    }

    /// Logs `text` when the last user is gone; at once if there is none.
    pub fn log_when_unused(&self, text: String) {
        let mut state = self.state.lock();
        state.log_when_unused = Some(text);
        state.log_if_unused();
    }
}

impl State {
    fn log_if_unused(&mut self) {
        if self.users == 0
            && let Some(text) = self.log_when_unused.take()
        {
            tracing::info!("{text}");
        }
    }
}

/// Held by everything that keeps a version open.
pub struct UsageGuard(Arc<UsageTracker>);

impl UsageGuard {
    pub fn new(tracker: &Arc<UsageTracker>) -> Arc<Self> {
        tracker.state.lock().users += 1;
        Arc::new(Self(Arc::clone(tracker)))
    }
}

impl Drop for UsageGuard {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.users -= 1;
        state.log_if_unused();
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
