//! The responses of all models: a map bounded by bytes, whose entries have a lifetime.

use crate::cached_response::CachedResponse;
use crate::key::{BuildKeyHasher, KeySeed, RequestKey};
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of one shard at least: a response must fit into a shard.
const SHARD_BYTES: u64 = 256 << 20;
const MAX_SHARDS: u64 = 16;
/// The largest part of a shard that a response may take.
const LARGEST_SHARE: f64 = 0.97;
/// Bytes of an entry, to estimate how many keys of removed entries are worth to be remembered.
const TYPICAL_BYTES: u64 = 4096;

/// The responses of all models.
pub struct ResponseStore {
    entries: Cache<RequestKey, Arc<CachedResponse>, EntryWeight, BuildKeyHasher, RemovedEntries>,
    seed: KeySeed,
    limit: u64,
    /// Bytes of the largest entry.
    largest: u64,
    ttl: Option<Duration>,
    evictions: Arc<AtomicU64>,
    /// Number of the last version that was opened with it.
    versions: AtomicU64,
}

/// How full a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    pub entries: u64,
    pub bytes: u64,
    pub limit: u64,
    /// Entries that made place for others.
    pub evictions: u64,
}

/// The response does not fit into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    pub bytes: u64,
    pub largest: u64,
}

#[derive(Clone)]
struct EntryWeight;

impl Weighter<RequestKey, Arc<CachedResponse>> for EntryWeight {
    fn weight(&self, _: &RequestKey, entry: &Arc<CachedResponse>) -> u64 {
        entry.weight
    }
}

/// Counts what is evicted. It is dropped after the lock of the shard is released.
#[derive(Clone)]
struct RemovedEntries(Arc<AtomicU64>);

impl Lifecycle<RequestKey, Arc<CachedResponse>> for RemovedEntries {
    type RequestState = SmallVec<[Arc<CachedResponse>; 2]>;

    fn on_evict(
        &self,
        removed: &mut Self::RequestState,
        _: RequestKey,
        entry: Arc<CachedResponse>,
    ) {
        self.0.fetch_add(1, Ordering::Relaxed);
        removed.push(entry);
    }
}

impl ResponseStore {
    /// A store of at most `limit` bytes, whose entries are used for at most `ttl`.
    ///
    /// # Errors
    /// The map refuses its options.
    pub fn new(limit: u64, ttl: Option<Duration>) -> Result<Arc<Self>, String> {
        let shards = (limit / SHARD_BYTES).clamp(1, MAX_SHARDS);
        let shards = 1 << shards.ilog2();
        let options = OptionsBuilder::new()
            .shards(shards)
            .weight_capacity(limit)
            .hot_allocation(LARGEST_SHARE)
            .estimated_items_capacity((limit / TYPICAL_BYTES).clamp(1024, 1 << 20) as usize)
            .build()
            .map_err(|e| format!("response cache of {limit} bytes: {e}"))?;
        let evictions = Arc::<AtomicU64>::default();
        let removed = RemovedEntries(Arc::clone(&evictions));
        let hasher = BuildKeyHasher::default();
        let entries = Cache::with_options(options, EntryWeight, hasher, removed);
        let largest = (entries.shard_capacity() as f64 * LARGEST_SHARE) as u64;
        let (seed, versions) = (KeySeed::random(), AtomicU64::new(0));
        Ok(Arc::new(Self { entries, seed, limit, largest, ttl, evictions, versions }))
    }

    pub fn seed(&self) -> &KeySeed {
        &self.seed
    }

    /// The number of a version that is opened now.
    pub fn next_version(&self) -> u64 {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// When an entry that is made at `now_ns` expires.
    pub fn expiry(&self, now_ns: u64) -> u64 {
        let ns = |ttl: Duration| u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
        self.ttl.map_or(u64::MAX, |ttl| now_ns.saturating_add(ns(ttl)))
    }

    /// The entry with this key, unless it has expired.
    pub fn get(&self, key: RequestKey, now_ns: u64) -> Option<Arc<CachedResponse>> {
        let entry = self.entries.get(&key)?;
        if now_ns < entry.expires_ns {
            return Some(entry);
        }
        self.entries.remove_if(&key, |entry| entry.expires_ns <= now_ns);
        None
    }

    /// Whether an entry of `weight` bytes can be inserted.
    ///
    /// # Errors
    /// It is larger than the largest entry may be.
    pub fn admits(&self, weight: u64) -> Result<(), TooLarge> {
        let largest = self.largest;
        if weight > largest { Err(TooLarge { bytes: weight, largest }) } else { Ok(()) }
    }

    /// Adds an entry, which was admitted, or replaces one.
    pub fn insert(&self, key: RequestKey, entry: CachedResponse) {
        self.entries.insert(key, Arc::new(entry));
    }

    /// Removes the entries of a version that is closed.
    pub fn remove_version(&self, version: u64) {
        self.entries.retain(|_, entry| entry.version != version);
    }

    pub fn usage(&self) -> StoreUsage {
        StoreUsage {
            entries: self.entries.len() as u64,
            bytes: self.entries.weight(),
            limit: self.limit,
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
