//! Directories of a model repository.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How deep below a model's directory changes are looked for: deeper than any model, and links may lead in circles.
const MOST_DEEP: usize = 16;

/// What lay in a model's directory: every path with its time and size. The model has changed when two differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Print(Vec<(PathBuf, SystemTime, u64)>);

impl Print {
    /// # Errors
    /// Something could not be looked at; it may be going away at this moment.
    pub fn of(dir: &Path) -> std::io::Result<Self> {
        let mut print = Self(Vec::new());
        print.add(dir, 0)?;
        print.0.sort_unstable();
        Ok(print)
    }

    fn add(&mut self, path: &Path, depth: usize) -> std::io::Result<()> {
        let facts = std::fs::metadata(path)?;
        // The length of a directory is the file system's own affair.
        let len = if facts.is_dir() { 0 } else { facts.len() };
        self.0.push((path.to_owned(), facts.modified()?, len));
        if facts.is_dir() && depth < MOST_DEEP {
            for entry in std::fs::read_dir(path)? {
                self.add(&entry?.path(), depth + 1)?;
            }
        }
        Ok(())
    }
}

/// The directories of the model `name` in all roots.
pub fn dirs(roots: &[PathBuf], name: &str) -> Vec<PathBuf> {
    if !is_entry(name) {
        return Vec::new();
    }
    roots.iter().map(|root| root.join(name)).filter(|dir| dir.is_dir()).collect()
}

/// Whether `name` can be an entry of a directory, and leads nowhere else.
pub fn is_entry(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}

/// Model directories of all roots by name; a name that several roots hold has several.
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

/// Names in a directory, sorted, and whether each is a directory (links followed).
pub fn listing(dir: &Path) -> Result<Vec<(String, bool)>> {
    let fail = |e: std::io::Error| {
        Error::internal(format!("unable to read directory '{}': {e}", dir.display()))
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        match entry.file_name().into_string() {
            Ok(name) => entries.push((name, entry.path().is_dir())),
            Err(name) => tracing::warn!("'{}': name {name:?} is not UTF-8, skipped", dir.display()),
        }
    }
    entries.sort();
    Ok(entries)
}
