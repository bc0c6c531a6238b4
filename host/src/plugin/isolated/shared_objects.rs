//! Shared-memory objects of a child: their names begin with a prefix that the child is told, so that the host can remove what a
//! killed child leaves behind.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Environment variable of a child with its prefix.
pub const VARIABLE: &str = "TRTSERVER_SHM_PREFIX";

/// Where the system keeps the objects.
const FOLDER: &str = "/dev/shm";

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The prefix of one child; no other has it.
pub struct SharedObjects(String);

impl SharedObjects {
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("trtserver_{}_{number}_", std::process::id()))
    }

    pub fn prefix(&self) -> &str {
        &self.0
    }

    /// Removes what is left of the child, which has ended, and returns how many objects that were.
    pub fn remove(&self) -> usize {
        self.remove_in(Path::new(FOLDER))
    }

    fn remove_in(&self, folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let ours =
            entries.filter(|e| e.file_name().as_encoded_bytes().starts_with(self.0.as_bytes()));
        ours.filter(|entry| std::fs::remove_file(entry.path()).is_ok()).count()
    }
}

#[cfg(test)]
#[path = "shared_objects_tests.rs"]
mod tests;
