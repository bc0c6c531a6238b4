//! Use of the cache, for the metrics page.

use super::super::{CacheReport, CacheUsage};
use super::ModelCache;

impl CacheReport for ModelCache {
    fn cache_usage(&self) -> Option<CacheUsage> {
        Some(CacheUsage {
            bytes: self.bytes().ok()?,
            limit: self.limit,
            hits: self.lookups.hits(),
            misses: self.lookups.misses(),
        })
    }

    fn remove_copies(&self) {
        self.remove_trees();
    }
}
