//! The directory of the cache, as one server uses it.

use super::leftovers;
use super::lookups::CacheLookups;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How often the removal of trees is tried.
const REMOVALS: usize = 3;

/// The cache of one server.
pub struct ModelCache {
    pub(super) root: PathBuf,
    /// `--model-cache-size`; `None` = no limit.
    pub(super) limit: Option<u64>,
    /// Digests of the blobs that this process has verified or written.
    pub(super) verified: Mutex<HashSet<String>>,
    /// Held while blobs are removed for new ones, so that two downloads do not count on the same
    /// space.
    pub(super) evicting: Mutex<()>,
    /// Directory of this server's trees, and its lock.
    pub(super) trees: PathBuf,
    trees_lock: PathBuf,
    /// Held while this server has trees.
    lock: Mutex<Option<File>>,
    pub(super) next_tree: AtomicU64,
    pub lookups: CacheLookups,
}

impl ModelCache {
    /// # Errors
    /// The directory cannot be created or written; names it.
    pub fn open(root: &Path, limit: Option<u64>) -> Result<Arc<Self>, String> {
        let failed = |e: io::Error| format!("--model-cache-dir: '{}': {e}", root.display());
        for dir in ["objects", "blobs", "partial", "trees"] {
            fs::create_dir_all(root.join(dir)).map_err(failed)?;
        }
        leftovers::remove_stale(&root.join("trees"));
        leftovers::remove_old(&root.join("partial"));
        let (trees, trees_lock, lock) = leftovers::take_dir(&root.join("trees")).map_err(failed)?;
        Ok(Arc::new(Self {
            root: root.to_owned(),
            limit,
            verified: Mutex::default(),
            evicting: Mutex::new(()),
            trees,
            trees_lock,
            lock: Mutex::new(Some(lock)),
            next_tree: AtomicU64::new(0),
            lookups: CacheLookups::default(),
        }))
    }

    pub(super) fn path(&self, dir: &str, name: &str) -> PathBuf {
        self.root.join(dir).join(name)
    }
}

impl ModelCache {
    /// Removes the trees of this server: when it ends, also while something still refers to the
    /// cache.
    pub(super) fn remove_trees(&self) {
        let mut lock = self.lock.lock();
        if lock.is_none() {
            return;
        }
        // A model that is closed at this moment removes its own tree.
        for _ in 0..REMOVALS {
            match fs::remove_dir_all(&self.trees) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => continue,
                _ => {
                    let _ = fs::remove_file(&self.trees_lock);
                    break;
                }
            }
        }
        // With the file of the lock, what remains is removed by the next server.
        *lock = None;
    }
}

impl Drop for ModelCache {
    fn drop(&mut self) {
        self.remove_trees();
    }
}
