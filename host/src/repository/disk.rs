//! Directories of a model repository.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories of the model `name` in all roots.
pub fn dirs(roots: &[PathBuf], name: &str) -> Vec<PathBuf> {
    if !is_entry(name) {
        return Vec::new();
    }
    roots.iter().map(|root| root.join(name)).filter(|dir| dir.is_dir()).collect()
}

/// Whether `name` is a plain file name, without path separators.
pub fn is_entry(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}

/// Model directories of all roots by name. A model in several roots has several.
pub fn scan(roots: &[PathBuf]) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut models: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for root in roots {
        for (name, is_dir) in listing(root)? {
            if is_dir {
                models.entry(name.clone()).or_default().push(root.join(name));
            }
        }
    }
    Ok(models)
}

/// Sorted names in a directory, and whether each is a directory. Links are followed.
pub fn listing(dir: &Path) -> Result<Vec<(String, bool)>> {
    let fail = |e: std::io::Error| {
        Error::internal(format!("unable to read directory '{}': {e}", dir.display()))
    };
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        match entry.file_name().into_string() {
            Ok(name) => entries.push((name, entry.path().is_dir())),
            Err(name) => {
                tracing::warn!("'{}': ignoring {name:?}, whose name is not UTF-8", dir.display())
            }
        }
    }
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
