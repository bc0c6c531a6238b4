//! Whether a file is one that the loader may be given.
//!
//! The loader trusts the sizes in a file: one that was cut off while it was copied ends the process with SIGBUS. Of
//! others it says less than their owner wants to know, such as that a library for another machine "does not exist".

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{EI_CLASS, EI_DATA, ELFMAG, EM_AARCH64, EM_X86_64, Header};
use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use goblin::elf::{Elf, header::header64::SIZEOF_EHDR};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// `e_machine` of libraries that this process can load; none where we do not know it.
const MACHINE: Option<u16> = match () {
    () if cfg!(target_arch = "x86_64") => Some(EM_X86_64),
    () if cfg!(target_arch = "aarch64") => Some(EM_AARCH64),
    () => None,
};

/// # Errors
/// It is no 64-bit ELF file of this machine, or shorter than it says. The text names the file.
pub fn check(path: &Path) -> Result<(), String> {
    let unread = |e: io::Error| format!("{}: {e}", path.display());
    let file = File::open(path).map_err(unread)?;
    let size = file.metadata().map_err(unread)?.len();
    let mut head = Vec::new();
    (&file).take(SIZEOF_EHDR as u64).read_to_end(&mut head).map_err(unread)?;
    fault(&file, size, &head).map_or(Ok(()), |fault| Err(format!("{}: {fault}", path.display())))
}

fn fault(file: &File, size: u64, head: &[u8]) -> Option<String> {
    if head.len() < SIZEOF_EHDR {
        return Some(format!("not a shared library: it has {size} bytes"));
    }
    if !head.starts_with(ELFMAG) {
        return Some("not a shared library: it does not begin as an ELF file does".to_owned());
    }
    let header = Elf::parse_header(head).ok();
    let Some(header) = header.as_ref().filter(|header| is_ours(header)) else {
        // What of it can be read, of classes and byte orders that nobody has as well.
        let machine = header.map_or_else(|| "unknown".to_owned(), |h| h.e_machine.to_string());
        return Some(format!(
            "a library for another kind of machine (ELF class {}, byte order {}, machine {machine}); this server \
             runs on {}",
            head[EI_CLASS],
            head[EI_DATA],
            std::env::consts::ARCH
        ));
    };
    let whole = end(file, header).is_some_and(|end| end <= size);
    (!whole).then(|| format!("cut off: it has {size} bytes, and says that it has more"))
}

fn is_ours(header: &Header) -> bool {
    let order = if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big };
    header.container().is_ok_and(|container| container == Container::Big)
        && header.endianness().is_ok_and(|endianness| endianness == order)
        && MACHINE.is_none_or(|ours| ours == header.e_machine)
}

/// Where the last of the segments that are mapped ends; `None` when their table is not there.
fn end(file: &File, header: &Header) -> Option<u64> {
    let context = Ctx::new(header.container().ok()?, header.endianness().ok()?);
    let count = usize::from(header.e_phnum);
    let mut table = vec![0; count * ProgramHeader::size(context)];
    file.read_exact_at(&mut table, header.e_phoff).ok()?;
    let segments = ProgramHeader::parse(&table, 0, count, context).ok()?;
    let mapped = segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    Some(mapped.map(|segment| segment.p_offset.saturating_add(segment.p_filesz)).max().unwrap_or(0))
}
