//! A library in memory that stands in for a renamed `libtritonserver.so`.
//!
//! Tools that repair Python wheels rename the libraries in them: a backend of such a wheel needs
//! `libtritonserver-717102f0.so`. The loader would look for that file and find Triton itself. So a
//! library of that name is opened first that contains nothing but a dependency on
//! `libtritonserver.so`, which is this library.

use crate::fault::{Result, TritonFault};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::{MemfdFlags, memfd_create};
use std::io::Write;
use std::os::fd::AsRawFd;

/// The name under which this library is open.
pub const SONAME: &str = "libtritonserver.so";

/// Whether a needed library is Triton's under another name.
pub fn is_renamed(needed: &str) -> bool {
    needed != SONAME
        && needed.strip_prefix("libtritonserver").is_some_and(|rest| {
            rest.starts_with(['-', '.', '_']) && rest.split('.').any(|part| part == "so")
        })
}

/// Opens a stand-in of that name, for the life of the process.
pub fn open_carrier(name: &str) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| {
        TritonFault::internal(format_args!("the stand-in for {name} cannot be opened: {e}"))
    };
    let file = memfd_create("libtritonserver", MemfdFlags::CLOEXEC).map_err(|e| failed(&e))?;
    let mut file = std::fs::File::from(file);
    file.write_all(&image(name)).map_err(|e| failed(&e))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the library has no code, and its only dependency is this library, which is open.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|e| failed(&super::library::loader_message(&e)))?;
    std::mem::forget(library);
    Ok(())
}

/// An ELF file with a name, one dependency, and an empty symbol table.
fn image(name: &str) -> Vec<u8> {
    const HEADER: u64 = 64;
    const SEGMENT: u64 = 56;
    const SYMBOLS: u64 = HEADER + 3 * SEGMENT;
    const HASH: u64 = SYMBOLS + 24;
    const DYNAMIC: u64 = HASH + 16;
    const TAGS: u64 = 8;
    const STRINGS: u64 = DYNAMIC + TAGS * 16;
    let strings = [&[0], SONAME.as_bytes(), &[0], name.as_bytes(), &[0]].concat();
    let size = STRINGS + strings.len() as u64;

    let mut image = Vec::with_capacity(size as usize);
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    image.extend([0x7f, b'E', b'L', b'F', 2, order, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // Shared object, machine, version.
    image.extend(3u16.to_ne_bytes());
    image.extend(machine.to_ne_bytes());
    image.extend(1u32.to_ne_bytes());
    // Entry, segments, sections.
    [0, HEADER, 0].into_iter().for_each(|n| image.extend(n.to_ne_bytes()));
    image.extend(0u32.to_ne_bytes());
    [HEADER as u16, SEGMENT as u16, 3, 64, 0, 0]
        .into_iter()
        .for_each(|n| image.extend(n.to_ne_bytes()));
    let mut segment = |kind: u32, at: u64, bytes: u64, align: u64| {
        // Readable and writable: the loader writes into the dynamic section.
        image.extend(kind.to_ne_bytes());
        image.extend(6u32.to_ne_bytes());
        [at, at, at, bytes, bytes, align].into_iter().for_each(|n| image.extend(n.to_ne_bytes()));
    };
    segment(1, 0, size, 0x10000);
    segment(2, DYNAMIC, TAGS * 16, 8);
    // The stack need not be executable.
    segment(0x6474_e551, 0, 0, 16);
    image.extend([0; 24]);
    // One bucket and one chain, both empty.
    [1u32, 1, 0, 0].into_iter().for_each(|n| image.extend(n.to_ne_bytes()));
    let (needed, soname) = (1, 2 + SONAME.len() as u64);
    let tags = [
        (1, needed),
        (14, soname),
        (4, HASH),
        (6, SYMBOLS),
        (11, 24),
        (5, STRINGS),
        (10, strings.len() as u64),
        (0, 0),
    ];
    for (tag, value) in tags {
        image.extend(u64::to_ne_bytes(tag));
        image.extend(u64::to_ne_bytes(value));
    }
    image.extend(strings);
    image
}

#[cfg(test)]
#[path = "carrier_tests.rs"]
mod tests;
