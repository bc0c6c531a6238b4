//! A shared library's file before the dynamic loader opens it: its identity, whether it can be
//! opened at all, and what it would share with other libraries.
#![forbid(unsafe_code)]

mod dynamic; // the dynamic section and its symbols
mod linking; // what libraries of one process share

pub use dynamic::{DynamicSection, read_exports};
pub use linking::{LibraryConflict, LinkedLibrary};

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{self, ELFMAG, EM_AARCH64, EM_X86_64, ET_DYN, Header};
use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use goblin::elf::{Elf, header::header64::SIZEOF_EHDR};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Identity of a file. Changes when the file is replaced or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl FileStamp {
    /// # Errors
    /// There is no such file, or its directory cannot be searched.
    pub fn read(path: &Path) -> io::Result<Self> {
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

/// Why a file cannot be opened as a shared library. The text goes on after the file's name and a
/// colon.
#[derive(Debug)]
pub enum LibraryFault {
    Unreadable(io::Error),
    NotElf {
        bytes: u64,
    },
    /// Another architecture, word size or byte order.
    OtherMachine(Header),
    /// An object file, a program or a core dump.
    NotShared(Header),
    /// Shorter than its headers say, such as a file that is still being copied.
    Truncated {
        bytes: u64,
        expected: u64,
    },
}

impl fmt::Display for LibraryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LibraryFault::Unreadable(e) => write!(f, "cannot be read: {e}"),
            LibraryFault::NotElf { bytes } => {
                write!(f, "not a shared library: no ELF header in its {bytes} bytes")
            }
            LibraryFault::OtherMachine(header) => {
                let bits = if is_64_bit(header) { 64 } else { 32 };
                let order = match header.endianness() {
                    Ok(Endian::Little) => "little",
                    Ok(Endian::Big) => "big",
                    Err(_) => "unknown",
                };
                write!(
                    f,
                    "built for another machine: {} (ELF machine {}, {bits}-bit, {order}-endian); this one is {}",
                    header::machine_to_str(header.e_machine),
                    header.e_machine,
                    std::env::consts::ARCH
                )
            }
            LibraryFault::NotShared(header) => {
                let kind = header::et_to_str(header.e_type);
                write!(f, "not a shared library: an ELF file of type {kind}")
            }
            LibraryFault::Truncated { bytes: 0, .. } => f.write_str("the file is empty"),
            LibraryFault::Truncated { bytes, expected } => {
                write!(f, "truncated: {bytes} of at least {expected} bytes")
            }
        }
    }
}

impl std::error::Error for LibraryFault {}

/// `e_machine` of libraries that this process can load; `None` on other architectures.
const MACHINE: Option<u16> = match () {
    () if cfg!(target_arch = "x86_64") => Some(EM_X86_64),
    () if cfg!(target_arch = "aarch64") => Some(EM_AARCH64),
    () => None,
};

const ENDIAN: Endian = if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big };

/// Reads the headers only. The loader maps what they name; in a file that is still being copied the
/// first access to a missing page would kill the process with SIGBUS.
///
/// # Errors
/// The file is not a complete shared library for this machine.
pub fn check_library(path: &Path) -> Result<(), LibraryFault> {
    let metadata = std::fs::metadata(path).map_err(LibraryFault::Unreadable)?;
    if !metadata.is_file() {
        // Opening a FIFO would wait for a writer.
        let e = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(LibraryFault::Unreadable(e));
    }
    let bytes = metadata.len();
    let file = File::open(path).map_err(LibraryFault::Unreadable)?;
    let mut head = Vec::new();
    (&file).take(SIZEOF_EHDR as u64).read_to_end(&mut head).map_err(LibraryFault::Unreadable)?;
    if !head.starts_with(&ELFMAG[..head.len().min(ELFMAG.len())]) {
        return Err(LibraryFault::NotElf { bytes });
    }
    if head.len() < SIZEOF_EHDR {
        return Err(LibraryFault::Truncated { bytes, expected: SIZEOF_EHDR as u64 });
    }
    let header = Elf::parse_header(&head).map_err(|_| LibraryFault::NotElf { bytes })?;
    let our_order = header.endianness().is_ok_and(|endian| endian == ENDIAN);
    let our_machine = MACHINE.is_none_or(|machine| machine == header.e_machine);
    if !is_64_bit(&header) || !our_order || !our_machine {
        return Err(LibraryFault::OtherMachine(header));
    }
    if header.e_type != ET_DYN {
        return Err(LibraryFault::NotShared(header));
    }
    match last_byte(&file, &header) {
        expected if expected > bytes => Err(LibraryFault::Truncated { bytes, expected }),
        _ => Ok(()),
    }
}

fn is_64_bit(header: &Header) -> bool {
    header.container().is_ok_and(|container| container == Container::Big)
}

/// Where the last of what the headers name ends.
fn last_byte(file: &File, header: &Header) -> u64 {
    let table = |at: u64, size: u16, n: u16| at.saturating_add(u64::from(size) * u64::from(n));
    let segments_end = table(header.e_phoff, header.e_phentsize, header.e_phnum);
    // The table of sections is the last thing in most files.
    let end = segments_end.max(table(header.e_shoff, header.e_shentsize, header.e_shnum));
    let segments = segments(file, header).unwrap_or_default();
    let mapped = segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    mapped.fold(end, |end, segment| end.max(segment.p_offset.saturating_add(segment.p_filesz)))
}

/// `None` if their table is not all there.
fn segments(file: &File, header: &Header) -> Option<Vec<ProgramHeader>> {
    let context = Ctx::new(Container::Big, ENDIAN);
    let count = usize::from(header.e_phnum);
    let mut table = vec![0; count * ProgramHeader::size(context)];
    file.read_exact_at(&mut table, header.e_phoff).ok()?;
    ProgramHeader::parse(&table, 0, count, context).ok()
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
