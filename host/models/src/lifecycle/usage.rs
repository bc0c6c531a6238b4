//! Usage tracker of a version: reports when its last user is gone. Users are its requests, its
//! instances and its backend model.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// Counts the [`UsageGuard`]s of one version.
#[derive(Default)]
pub struct UsageTracker {
    state: Mutex<UsageState>,
    changed: Condvar,
}

#[derive(Default)]
struct UsageState {
    users: usize,
    when_unused: Option<Box<dyn FnOnce() + Send>>,
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
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| state.users > 0, limit);
        state.users == 0
    }

    /// Calls `report` when the last user is gone; at once if there is none.
    pub fn when_unused(&self, report: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        state.when_unused = Some(Box::new(report));
        state.report_if_unused();
    }
}

impl UsageState {
    fn report_if_unused(&mut self) {
        if self.users == 0
            && let Some(report) = self.when_unused.take()
        {
            report();
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
        state.report_if_unused();
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
