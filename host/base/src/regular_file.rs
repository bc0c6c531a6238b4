//! Reads files into memory that others wrote (of models, `plugin.toml`): regular files only, and
//! none larger than its limit.

use std::fs::{File, FileType, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file; symbolic links are followed. A device or a FIFO might never end or never
/// begin.
///
/// # Errors
/// The system's, or what the path is instead of a regular file.
pub fn open_regular_file(path: &Path) -> Result<File> {
    let refused = |found: FileType| {
        let text = format!("not a regular file but a {}", file_type_name(found));
        Err(Error::new(ErrorKind::InvalidInput, text))
    };
    // Opening a socket fails, and opening a device may have an effect.
    let found = std::fs::metadata(path)?.file_type();
    if !found.is_file() {
        return refused(found);
    }
    // The path may have been replaced meanwhile, and a FIFO without a writer would block `open`.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let found = file.metadata()?.file_type();
    if found.is_file() { Ok(file) } else { refused(found) }
}

/// What a path is that is not a regular file.
fn file_type_name(found: FileType) -> &'static str {
    match found {
        t if t.is_dir() => "directory",
        t if t.is_fifo() => "FIFO (named pipe)",
        t if t.is_socket() => "socket",
        t if t.is_char_device() => "character device",
        t if t.is_block_device() => "block device",
        _ => "file of an unknown type",
    }
}

/// The contents of a regular file of at most `limit` bytes; `Ok(Err(bytes))` when it is larger.
///
/// # Errors
/// It cannot be opened or read, or there is no memory for it.
pub fn read_regular_file(path: &Path, limit: u64) -> Result<std::result::Result<Vec<u8>, u64>> {
    let file = open_regular_file(path)?;
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
#[path = "regular_file_tests.rs"]
mod tests;
