//! Exclusive use of a path between processes, until the file is dropped or its process ends.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Locks the file at `path`, which is created if needed. `None` if another user has it.
///
/// # Errors
/// The file cannot be created or locked.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // Its last user may have renamed or removed the file between the two calls.
        let own = file.metadata()?;
        match std::fs::metadata(path) {
            Ok(found) if (found.dev(), found.ino()) == (own.dev(), own.ino()) => {
                return Ok(Some(file));
            }
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
}
