//! Reads the files of a model into memory: regular files only, and none larger than its limit.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file; symbolic links are followed. A device or a FIFO might never end or never begin.
///
/// # Errors
/// The system's, or what the path is instead of a regular file.
pub fn open(path: &Path) -> Result<File> {
    // A FIFO without a writer would block `open`.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// The contents of a regular file of at most `limit` bytes; `Ok(Err(bytes))` when it is larger.
///
/// # Errors
/// It cannot be opened or read, or there is no memory for it.
pub fn read(path: &Path, limit: u64) -> Result<std::result::Result<Vec<u8>, u64>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    if size > limit {
        return Ok(Err(size));
    }
    let mut bytes = Vec::new();
    let out_of_memory = |_| Error::new(ErrorKind::OutOfMemory, "out of memory");
    bytes.try_reserve_exact(size as usize + 1).map_err(out_of_memory)?;
    // It may grow meanwhile.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    Ok(if read > limit { Err(read) } else { Ok(bytes) })
}

#[cfg(test)]
#[path = "model_files_tests.rs"]
mod tests;
