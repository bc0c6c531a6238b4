//! The version of a model that a nested request reached, which responses tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Shared by what submits a request and what delivers its responses.
#[derive(Clone)]
pub struct ReachedVersion(Arc<AtomicI64>);

impl Default for ReachedVersion {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(-1)))
    }
}

impl ReachedVersion {
    pub fn set(&self, version: i64) {
        self.0.store(version, Ordering::Relaxed);
    }

    /// Below 0 until it is known.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
