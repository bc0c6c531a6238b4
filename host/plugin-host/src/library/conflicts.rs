//! Refuses a library that would share variables or needed libraries with one that is loaded: two
//! versions of a backend, each with its own `libdep.so`, or with static variables of C++ templates,
//! would silently use parts of each other.

use super::LIBRARIES;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use trtserver_library_file::{LibraryConflict, LinkedLibrary};

/// Reads a library and its private dependencies before it is opened.
///
/// # Errors
/// Why it cannot be loaded beside the libraries of this process, as the rest of a sentence about
/// the file.
pub fn check_conflicts(path: &Path) -> Result<LinkedLibrary, String> {
    // The loader explains best what is wrong with a file that cannot be read.
    let linked = LinkedLibrary::read(path).unwrap_or_default();
    if linked.is_self_contained() {
        return Ok(linked);
    }
    let conflict = LIBRARIES.linked.lock().iter().find_map(|opened| linked.conflict(opened));
    match conflict.or_else(|| mapped().iter().find_map(|path| linked.conflict_with_mapped(path))) {
        Some(conflict) => Err(conflict_text(&conflict)),
        None => Ok(linked),
    }
}

/// The rest of a sentence about a file.
pub fn conflict_text(conflict: &LibraryConflict) -> String {
    format!(
        "it {conflict}, or run the models of one of them in processes of their own (isolation=process)"
    )
}

/// Records a library that was opened.
pub fn note_opened(linked: LinkedLibrary) {
    if !linked.is_self_contained() {
        LIBRARIES.linked.lock().push(linked);
    }
}

/// Files whose code is mapped into this process: also libraries that others opened.
fn mapped() -> BTreeSet<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH
    let code = maps.lines().filter(|line| line.contains(" r-xp "));
    code.filter_map(|line| Some(line[line.find('/')?..].into())).collect()
}
