//! How often the content of an object was in the cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// Contents that were looked for in the cache.
#[derive(Default)]
pub struct CacheLookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl CacheLookups {
    pub fn count(&self, found: bool) {
        let lookups = if found { &self.hits } else { &self.misses };
        lookups.fetch_add(1, Ordering::Relaxed);
    }

    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}
