//! Fingerprint of a model's directory: a load is skipped when it has not changed.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Every path below a model's directory, with modification time and size.
#[derive(Debug, PartialEq, Eq)]
pub struct Fingerprint(Vec<(PathBuf, SystemTime, u64)>);

impl Fingerprint {
    /// # Errors
    /// The metadata of a file or the entries of a directory cannot be read.
    pub fn of(dir: &Path) -> std::io::Result<Self> {
        let (mut files, mut visited) = (Vec::new(), BTreeSet::new());
        let mut pending = vec![dir.to_owned()];
        while let Some(path) = pending.pop() {
            // A dangling link counts as a file.
            let metadata = match fs::metadata(&path).or_else(|_| fs::symlink_metadata(&path)) {
                Ok(metadata) => metadata,
                Err(e) if e.kind() == ErrorKind::NotFound && path != dir => continue,
                Err(e) => return Err(e),
            };
            // Links may form a cycle.
            if metadata.is_dir() && visited.insert((metadata.dev(), metadata.ino())) {
                for entry in fs::read_dir(&path)? {
                    pending.push(entry?.path());
                }
            }
            // The length of a directory depends on the file system, not on its entries.
            let len = if metadata.is_dir() { 0 } else { metadata.len() };
            files.push((path, metadata.modified()?, len));
        }
        files.sort_unstable();
        Ok(Self(files))
    }
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
