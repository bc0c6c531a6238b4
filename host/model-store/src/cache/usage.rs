//! Use of the cache, for the metrics page.

use super::super::CacheUsage;
use super::Cache;
use std::sync::{Arc, Weak};
use trtserver_base::sync::Mutex;

/// The cache of this server, if it has one.
static CURRENT: Mutex<Weak<Cache>> = Mutex::new(Weak::new());

/// `cache` is the one of this server.
pub fn register(cache: &Arc<Cache>) {
    *CURRENT.lock() = Arc::downgrade(cache);
}

/// Use of the cache; `None`: this server has no repository in an object store. Lists the files.
pub fn usage() -> Option<CacheUsage> {
    let cache = CURRENT.lock().upgrade()?;
    Some(CacheUsage {
        bytes: cache.bytes().ok()?,
        limit: cache.limit,
        hits: cache.lookups.hits(),
        misses: cache.lookups.misses(),
    })
}
