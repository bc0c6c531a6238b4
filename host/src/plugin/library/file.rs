//! Checks of a plugin file before it is opened: its identity, and whether it is truncated.

use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use goblin::elf::{Elf, Header, header};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity of a file. Changes when the file is replaced or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    pub fn of(path: &Path) -> io::Result<Self> {
        let m = std::fs::metadata(path)?;
        Ok(Self {
            device: m.dev(),
            inode: m.ino(),
            bytes: m.size(),
            modified: (m.mtime(), m.mtime_nsec()),
        })
    }

    /// The same inode, perhaps with other content.
    pub fn same_inode(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Refuses a truncated file. The loader maps what the headers name; in a file that is still being copied the first
/// access to a missing page would kill the process with SIGBUS.
///
/// # Errors
/// The end of a sentence about the file.
pub fn check_complete(path: &Path) -> Result<(), String> {
    let unread = |e: io::Error| format!("cannot be read: {e}");
    let file = std::fs::File::open(path).map_err(unread)?;
    let size = file.metadata().map_err(unread)?.len();
    // Program headers are at the front of a library.
    let mut head = Vec::new();
    file.take(64 << 10).read_to_end(&mut head).map_err(unread)?;
    if head.is_empty() {
        return Err("is empty; it is tried again when it has changed".into());
    }
    if head.starts_with(&header::ELFMAG[..head.len().min(4)]) && head.len() < 64 {
        return Err(truncated(size, 64));
    }
    // Not ELF: the loader reports what is wrong.
    let Ok(header) = Elf::parse_header(&head) else { return Ok(()) };
    match last_byte(&header, &head) {
        Some(needed) if needed > size => Err(truncated(size, needed)),
        _ => Ok(()),
    }
}

/// End of the last part that the headers name.
fn last_byte(header: &Header, head: &[u8]) -> Option<u64> {
    let table = |at: u64, size: u16, n: u16| at.saturating_add(u64::from(size) * u64::from(n));
    let segments_end = table(header.e_phoff, header.e_phentsize, header.e_phnum);
    // The section table is last in most files.
    let mut needed = segments_end.max(table(header.e_shoff, header.e_shentsize, header.e_shnum));
    if segments_end <= head.len() as u64 {
        let ctx = goblin::container::Ctx::new(header.container().ok()?, header.endianness().ok()?);
        let count = usize::from(header.e_phnum);
        let segments = ProgramHeader::parse(head, header.e_phoff as usize, count, ctx).ok()?;
        for segment in segments.iter().filter(|s| s.p_type == PT_LOAD) {
            needed = needed.max(segment.p_offset.saturating_add(segment.p_filesz));
        }
    }
    Some(needed)
}

fn truncated(size: u64, needed: u64) -> String {
    format!(
        "is truncated: {size} bytes, expected at least {needed}; it is tried again when it has changed"
    )
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
