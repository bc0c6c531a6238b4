//! Files that appear at once, and names of contents.

use std::io::{self, ErrorKind};
use std::path::Path;

/// Writes a file so that other processes see all of it or nothing.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(ErrorKind::InvalidInput)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    io::Write::write_all(&mut file, content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// As lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
