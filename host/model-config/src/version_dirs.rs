//! Version directories of a model: which entries of its directory are versions.

use std::collections::BTreeMap;
use std::path::Path;
use trtserver_base::disk::list_dir;
use trtserver_base::error::Result;

/// What an entry of a model's directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DirEntryKind {
    Version(i64),
    Other,
    /// Looks like a version but is not used; with a warning for the operator.
    Ignored(String),
}

/// Directories of a model that have a meaning of their own.
const RESERVED: [&str; 3] = ["warmup", "initial_state", "configs"];

/// The version directories of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionDirs {
    /// Version and the name of its directory, ascending.
    pub versions: BTreeMap<i64, String>,
    pub warnings: Vec<String>,
}

impl VersionDirs {
    /// # Errors
    /// The model's directory `dir` cannot be read.
    pub fn read(dir: &Path) -> Result<Self> {
        let entries = list_dir(dir)?;
        Ok(Self::among(entries.iter().map(|(name, is_dir)| (name.as_str(), *is_dir))))
    }

    /// Selects among `entries`, each a name and whether it is a directory. A name that only begins
    /// with a number is a version if no name is a bare number; beside one, `2_old` or `1.bak` is a
    /// backup. If two directories stand for one version, the first by name is taken.
    fn among<'a>(entries: impl IntoIterator<Item = (&'a str, bool)>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        // `3` sorts before every longer name that starts with it.
        entries.sort_unstable();
        let mut found = Self::default();
        let is_bare = |(name, is_dir): &(&str, bool)| match classify_entry(name, *is_dir) {
            DirEntryKind::Version(version) => version.to_string() == *name,
            _ => false,
        };
        let bare = entries.iter().find(|entry| is_bare(entry)).map(|(name, _)| *name);
        for (name, is_dir) in entries {
            match classify_entry(name, is_dir) {
                DirEntryKind::Other => {}
                DirEntryKind::Ignored(warning) => found.warnings.push(warning),
                DirEntryKind::Version(version) => match (bare, found.versions.get(&version)) {
                    (Some(bare), _) if version.to_string() != name => {
                        found.warnings.push(format!(
                                "ignore version directory '{name}' beside '{bare}', whose name is a bare number; rename \
                                 it to '{version}' if it is a version"
                            ));
                    }
                    (_, Some(taken)) => found.warnings.push(format!(
                        "ignore version directory '{name}': version {version} is '{taken}'"
                    )),
                    (_, None) => {
                        found.versions.insert(version, name.to_owned());
                    }
                },
            }
        }
        found
    }
}

/// Whether a directory of this name is a version of its model.
pub fn is_version(name: &str) -> bool {
    matches!(classify_entry(name, true), DirEntryKind::Version(_))
}

/// Whether a directory of this name in a model has a meaning of its own.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// A directory whose name starts with digits is the version of that number.
fn classify_entry(name: &str, is_dir: bool) -> DirEntryKind {
    let digits = &name[..name.bytes().take_while(u8::is_ascii_digit).count()];
    if !is_dir || is_reserved(name) || name.is_empty() || name.starts_with('.') {
        return DirEntryKind::Other;
    }
    if digits.is_empty() {
        return DirEntryKind::Ignored(format!(
            "ignore version directory '{name}' which fails to convert to integral number"
        ));
    }
    if name.len() > 1 && name.starts_with('0') {
        return DirEntryKind::Ignored(format!(
            "ignore version directory '{name}' which contains leading zeros in its directory name"
        ));
    }
    match digits.parse() {
        Ok(version) => DirEntryKind::Version(version),
        Err(_) => DirEntryKind::Ignored(format!(
            "ignore version directory '{name}' whose number is out of range"
        )),
    }
}

#[cfg(test)]
#[path = "version_dirs_tests.rs"]
mod tests;
