//! Model directories of this server, made of hard links to contents in the cache.

use super::{CachedBlob, ModelCache};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A directory that is removed when it is dropped.
pub struct CachedTree {
    path: PathBuf,
    _cache: Arc<ModelCache>,
}

impl ModelCache {
    /// An empty directory whose last component is `name`: backends may log it or use its name.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn tree(self: &Arc<Self>, name: &str) -> io::Result<CachedTree> {
        let number = self.next_tree.fetch_add(1, Ordering::Relaxed);
        let path = self.trees.join(number.to_string()).join(name);
        fs::create_dir_all(&path)?;
        Ok(CachedTree { path, _cache: Arc::clone(self) })
    }
}

impl CachedTree {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// The directory cannot be created.
    pub fn add_dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.path.join(path))
    }

    /// Adds a file with the content of `blob`.
    ///
    /// # Errors
    /// `NotFound`: another server has removed the blob meanwhile. Else a directory cannot be
    /// created, or the file system has no hard links.
    pub fn add_file(&self, path: &str, blob: &CachedBlob) -> io::Result<()> {
        let path = self.path.join(path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::hard_link(&blob.path, &path)
    }
}

impl Drop for CachedTree {
    fn drop(&mut self) {
        let dir = self.path.parent().unwrap_or(&self.path);
        // What remains is removed when the server ends.
        let _ = fs::remove_dir_all(dir);
    }
}
