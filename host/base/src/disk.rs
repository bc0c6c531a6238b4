//! Sorted entries of a directory, and the advice that follows an error of permission.

use crate::error::{Error, Result};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
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
    let fail = |e: io::Error| {
        let whose = access_advice(dir, &e);
        Error::internal(format!("unable to read directory '{}': {e}{whose}", dir.display()))
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

/// What follows the error of a file that may not be read: who the server is, and whose the file is.
/// Nothing for other errors. Containers and service managers run the server as another user than the
/// one who copied the models.
pub fn access_advice(file: &Path, error: &io::Error) -> String {
    if error.kind() != ErrorKind::PermissionDenied {
        return String::new();
    }
    // The kernel's own files of a process belong to its effective user.
    let Ok(server) = fs::metadata("/proc/self").map(|own| own.uid()) else {
        return String::new();
    };
    match fs::metadata(file) {
        Ok(of) => format!(
            "; the server runs as user {server}, and this belongs to user {} with mode {:o}: let the server's user \
             read it",
            of.uid(),
            of.mode() & 0o7777
        ),
        Err(_) => format!("; the server runs as user {server}: let it enter the directories above"),
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
