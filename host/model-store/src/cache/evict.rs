//! The size limit of the cache: contents that no server uses are removed, those used longest ago
//! first.

use super::ModelCache;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

impl ModelCache {
    /// Makes space for `bytes` more.
    ///
    /// # Errors
    /// What is in use leaves no space for them; for the log.
    pub fn make_space(&self, bytes: u64) -> Result<(), String> {
        let Some(limit) = self.limit else { return Ok(()) };
        let _evicting = self.evicting.lock();
        let failed = |e: io::Error| format!("model cache '{}': {e}", self.root.display());
        let blobs = self.files("blobs").map_err(failed)?;
        let partial = self.files("partial").map_err(failed)?;
        let mut used = total_size(&blobs) + total_size(&partial);
        let (mut unused, in_use): (Vec<_>, Vec<_>) =
            blobs.into_iter().partition(|(_, metadata)| metadata.nlink() == 1);
        unused.sort_by_key(|(_, m)| m.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        for (entry, metadata) in unused {
            if used.saturating_add(bytes) <= limit {
                break;
            }
            tracing::info!("model cache: removing '{}'", entry.path().display());
            // Another server may have removed it.
            let _ = fs::remove_file(entry.path());
            used = used.saturating_sub(metadata.len());
        }
        if used.saturating_add(bytes) <= limit {
            return Ok(());
        }
        let in_use: u64 = in_use.iter().map(|(_, metadata)| metadata.len()).sum();
        Err(format!(
            "model cache '{}': {bytes} bytes do not fit: {in_use} bytes belong to loaded models and {} to downloads, \
             the limit is {limit} bytes (--model-cache-size)",
            self.root.display(),
            used.saturating_sub(in_use)
        ))
    }

    /// Space that the cache takes, with unfinished downloads.
    pub(super) fn bytes(&self) -> io::Result<u64> {
        Ok(total_size(&self.files("blobs")?) + total_size(&self.files("partial")?))
    }

    fn files(&self, dir: &str) -> io::Result<Vec<(DirEntry, Metadata)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.root.join(dir))? {
            let entry = entry?;
            // A file may be removed meanwhile.
            if let Ok(metadata) = entry.metadata() {
                files.push((entry, metadata));
            }
        }
        Ok(files)
    }
}

/// Space that is allocated: a partial download has its full length from the beginning.
fn total_size(files: &[(DirEntry, Metadata)]) -> u64 {
    files.iter().map(|(_, m)| m.len().min(m.blocks() * 512)).sum()
}
