//! Returns the pages of the program that only the start has used.
//!
//! Reading arguments, configurations and certificates, and loading models touch most of the program's code. These pages
//! stay in the page cache when they are unmapped, and no longer count as memory of the process. A page that a request uses is mapped
//! again by a page fault.

use rustix::mm::{Advice, madvise};
use std::ops::Range;

/// Takes the code of the program out of the process's resident memory.
pub fn release() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let Some(program) = std::fs::read_link("/proc/self/exe").ok() else { return };
    for range in code(&maps, &program.to_string_lossy()) {
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: a mapping of a file without write permission, to which nothing was ever written: a page that is used later
        // is read from the file. The program stays mapped until the process ends.
        let _ = unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) };
    }
}

/// Executable mappings of `program` in the text of `/proc/self/maps`.
fn code(maps: &str, program: &str) -> Vec<Range<usize>> {
    let mappings = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let path = &rest[rest.find('/')?..];
        let (start, end) = range.split_once('-')?;
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        (rest.starts_with("r-xp") && path == program).then_some(address(start)?..address(end)?)
    });
    mappings.collect()
}

#[cfg(test)]
#[path = "start_pages_tests.rs"]
mod tests;
