//! Entries of a directory, sorted.

use crate::error::{Error, Result};
use std::fs;
use std::path::Path;

/// Whether `name` is a plain file name, without path separators.
pub fn is_entry(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}

/// Whether an entry of a repository counts nowhere: hidden files, copies that editors and transfers
/// make meanwhile.
pub fn is_ignored(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~') || name.ends_with(".tmp") || name == "lost+found"
}

/// Sorted names in a directory, and whether each is a directory. Links are followed. Without
/// [ignored](is_ignored) names.
pub fn list_dir(dir: &Path) -> Result<Vec<(String, bool)>> {
    let fail = |e: std::io::Error| {
        Error::internal(format!("unable to read directory '{}': {e}", dir.display()))
    };
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        match entry.file_name().into_string() {
            Ok(name) if is_ignored(&name) => {}
            Ok(name) => entries.push((name, entry.path().is_dir())),
            Err(name) => {
                tracing::warn!("'{}': ignoring {name:?}, whose name is not UTF-8", dir.display())
            }
        }
    }
    entries.sort();
    Ok(entries)
}
