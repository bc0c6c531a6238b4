//! What servers that have ended left in the cache, and the directory that a server takes for its
//! own trees.

use super::lock::try_lock;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// An interrupted download that was not resumed for this time is removed.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Creates the directory of this server's trees: its path, that of its lock, and the lock.
pub fn take_dir(trees: &Path) -> io::Result<(PathBuf, PathBuf, File)> {
    for attempt in 0.. {
        let dir = trees.join(format!("{}-{attempt}", std::process::id()));
        let lock = dir.with_extension("lock");
        // Process ids are unique within one container only.
        if let Some(file) = try_lock(&lock)? {
            // The server that had this name before has ended.
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir)?;
            return Ok((dir, lock, file));
        }
    }
    Err(io::Error::other("no free name"))
}

/// Removes the trees of servers that have ended without removing them.
pub fn remove_stale(trees: &Path) {
    let Ok(entries) = fs::read_dir(trees) else { return };
    for lock in entries.flatten().map(|entry| entry.path()) {
        if lock.extension().is_some_and(|extension| extension == "lock")
            && let Ok(Some(_lock)) = try_lock(&lock)
        {
            let _ = fs::remove_dir_all(lock.with_extension(""));
            let _ = fs::remove_file(&lock);
        }
    }
}

/// Removes downloads that were not resumed for long.
pub fn remove_old(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_old = entry.metadata().and_then(|m| m.modified()).is_ok_and(|modified| {
            SystemTime::now().duration_since(modified).is_ok_and(|age| age > MAX_AGE)
        });
        if is_old
            && path.extension().is_none()
            && let Ok(Some(_lock)) = try_lock(&path)
        {
            let _ = fs::remove_file(chunks_path(&path));
            let _ = fs::remove_file(&path);
        }
    }
}

/// Digests of the complete chunks of the download at `path`.
pub fn chunks_path(path: &Path) -> PathBuf {
    path.with_extension("chunks")
}
