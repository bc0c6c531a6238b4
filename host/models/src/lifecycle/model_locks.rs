//! Model locks: one change at a time per model, in the order of arrival. Changes of different
//! models run in parallel.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Locks by model name. Only names that are locked or waited for have an entry.
#[derive(Default)]
pub struct ModelLocks {
    by_name: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// Holds the lock of one model until it is dropped.
pub struct ModelLock {
    name: String,
    guard: Option<OwnedMutexGuard<()>>,
    locks: Arc<ModelLocks>,
}

impl ModelLocks {
    /// Waits for the lock of `name`. A task that holds a model lock must not wait for another: two
    /// such tasks could deadlock.
    pub async fn lock(self: &Arc<Self>, name: &str) -> ModelLock {
        let lock = Arc::clone(self.by_name.lock().entry(name.to_owned()).or_default());
        let guard = Some(lock.lock_owned().await);
        ModelLock { name: name.to_owned(), guard, locks: Arc::clone(self) }
    }
}

impl Drop for ModelLock {
    fn drop(&mut self) {
        let mut by_name = self.locks.by_name.lock();
        self.guard = None;
        // Each waiting task holds a reference, so a count of one means that none waits.
        if by_name.get(&self.name).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            by_name.remove(&self.name);
        }
    }
}

#[cfg(test)]
#[path = "model_locks_tests.rs"]
mod tests;
