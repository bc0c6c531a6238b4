//! Whether a file is one that the loader may be given.
//!
//! The loader trusts the sizes in a file: one that was cut off while it was copied ends the process with SIGBUS. Of
//! others it says less than their owner wants to know, such as that a library for another machine "does not exist".

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of the file header, and of the part of a program header that counts here.
const HEADER: usize = 64;
const SEGMENT: usize = 40;
/// A segment that is mapped into memory.
const LOAD: u32 = 1;

/// `e_machine` of libraries that this process can load; none where we do not know it.
const MACHINE: Option<u16> = match () {
    () if cfg!(target_arch = "x86_64") => Some(62),
    () if cfg!(target_arch = "aarch64") => Some(183),
    () => None,
};

/// A number of `N` bytes there; the files of this machine have its byte order.
fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    from.get(at..at + N).and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

/// # Errors
/// It is no 64-bit ELF file of this machine, or shorter than it says. The text names the file.
pub fn check(path: &Path) -> Result<(), String> {
    let fail = |text: String| Err(format!("{}: {text}", path.display()));
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let size = file.metadata().map_err(|e| format!("{}: {e}", path.display()))?.len();
    let mut header = [0; HEADER];
    if file.read_exact_at(&mut header, 0).is_err() {
        return fail(format!("not a shared library: it has {size} bytes"));
    }
    if header[..4] != *b"\x7fELF" {
        return fail("not a shared library: it does not begin as an ELF file does".to_owned());
    }
    // Class 2 = 64 bits; byte order 1 = little endian.
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    let machine = u16::from_ne_bytes(bytes(&header, 18));
    if header[4..6] != [2, order] || MACHINE.is_some_and(|ours| ours != machine) {
        return fail(format!(
            "a library for another kind of machine (ELF class {}, byte order {}, machine {machine}); this server \
             runs on {}",
            header[4],
            header[5],
            std::env::consts::ARCH
        ));
    }
    let table = u64::from_ne_bytes(bytes(&header, 32));
    let entry = u64::from(u16::from_ne_bytes(bytes(&header, 54)));
    let count = u64::from(u16::from_ne_bytes(bytes(&header, 56)));
    for at in (0..count).map(|n| table.saturating_add(n * entry)) {
        let mut segment = [0; SEGMENT];
        let end = match file.read_exact_at(&mut segment, at) {
            Err(_) => u64::MAX,
            Ok(()) if u32::from_ne_bytes(bytes(&segment, 0)) != LOAD => continue,
            Ok(()) => {
                let offset = u64::from_ne_bytes(bytes(&segment, 8));
                offset.saturating_add(u64::from_ne_bytes(bytes(&segment, 32)))
            }
        };
        if end > size {
            return fail(format!("cut off: it has {size} bytes, and says that it has more"));
        }
    }
    Ok(())
}
