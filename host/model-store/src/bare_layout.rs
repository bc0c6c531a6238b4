//! What a directory that is given as a repository looks like: model directories, the files of one
//! model, or a mistake.

use std::collections::BTreeSet;
use std::path::Path;
use trtserver_base::disk::list_dir;
use trtserver_model_config::FILE_NAME;
use trtserver_model_config::version_dirs::{is_reserved, is_version};
use trtserver_model_config::{WHOLE_DIRECTORY, WHOLE_DIRECTORY_FILES};

/// Ends of names that belong to the model and not to its version: labels, notes.
const TEXT_ENDS: [&str; 3] = [".txt", ".md", ".pbtxt"];
/// Names listed in a warning.
const LISTED: usize = 4;

/// What a directory that is given as a repository is.
#[derive(Debug, PartialEq, Eq)]
pub enum RootLayout {
    /// A directory of model directories; with what looks like a mistake.
    Models { warning: Option<String> },
    /// The files of one model.
    Bare(BareEntry),
}

/// What a bare repository is recognised by.
#[derive(Debug, PartialEq, Eq)]
pub enum BareEntry {
    /// A model file, or a directory, of this name.
    Named(String),
    /// The directory itself is the model. `name` shows it, `as_entry` is its name in a version.
    WholeDirectory { name: String, as_entry: &'static str },
}

/// Where a load looks for an entry of a bare repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionEntry {
    Model,
    Version,
    None,
}

impl BareEntry {
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::WholeDirectory { name, .. } => name,
        }
    }

    /// Where a load looks for the entry `name`.
    pub fn place(&self, name: &str, is_dir: bool) -> VersionEntry {
        let is_text = !is_dir && TEXT_ENDS.iter().any(|end| name.ends_with(end));
        match self {
            _ if is_dir && is_reserved(name) => VersionEntry::Model,
            Self::WholeDirectory { .. } if is_dir => VersionEntry::None,
            Self::WholeDirectory { .. } => VersionEntry::Model,
            Self::Named(own) if is_text && name != own => VersionEntry::Model,
            Self::Named(_) => VersionEntry::Version,
        }
    }
}

/// The entry by which a bare repository with these entries is recognised. `files` are the names of
/// models in a version.
pub fn find_bare_entry(entries: &[(String, bool)], files: &BTreeSet<String>) -> Option<BareEntry> {
    let named = entries.iter().find(|(name, _)| files.contains(name));
    if let Some((name, _)) = named {
        return Some(BareEntry::Named(name.clone()));
    }
    let is_saved = |(name, is_dir): &&(String, bool)| {
        !is_dir && WHOLE_DIRECTORY_FILES.contains(&name.as_str())
    };
    let (name, _) = entries.iter().find(is_saved)?;
    let whole = BareEntry::WholeDirectory { name: name.clone(), as_entry: WHOLE_DIRECTORY };
    files.contains(WHOLE_DIRECTORY).then_some(whole)
}

/// Looks at the directory `root`. What cannot be read is not a bare repository.
pub fn read_layout(root: &Path, files: &BTreeSet<String>) -> RootLayout {
    let entries = list_dir(root).unwrap_or_default();
    let bare = find_bare_entry(&entries, files);
    // A model may be called as a model file is.
    let bare = bare.filter(|entry| !is_model_dir(&root.join(entry.name())));
    let dirs = || entries.iter().filter(|(_, is_dir)| *is_dir).map(|(name, _)| name.as_str());
    let versions: Vec<&str> = dirs().filter(|name| is_version(name)).collect();
    let is_bare_entry = |name: &str| bare.as_ref().is_some_and(|bare| bare.name() == name);
    // Other repositories may be large: they are not looked into.
    let models: Vec<&str> = match bare.is_some() || !versions.is_empty() {
        true => dirs()
            .filter(|name| !is_bare_entry(name) && !is_reserved(name))
            .filter(|name| is_model_dir(&root.join(name)))
            .collect(),
        false => Vec::new(),
    };
    let has_config = entries.iter().any(|(name, is_dir)| name == FILE_NAME && !is_dir);
    let shown = root.display();
    let warning = match (bare, models.as_slice(), versions.as_slice()) {
        (Some(bare), [], []) => return RootLayout::Bare(bare),
        (Some(bare), [_, ..], _) => Some(format!(
            "'{0}' in model repository '{shown}' is not served, because model directories are beside it ({1}): move \
             it to '{shown}/NAME/1/{0}', or to a directory of its own",
            bare.name(),
            list_names(&models)
        )),
        (bare, [], [first, ..]) if bare.is_some() || has_config => Some(format!(
            "model repository '{shown}' looks like the directory of one model, since it has the version directory \
             '{first}'{}: the repository is the directory above it",
            match bare {
                Some(bare) => format!(" beside '{}'", bare.name()),
                None => format!(" beside '{FILE_NAME}'"),
            }
        )),
        (None, ..) if dirs().next().is_none() && !entries.is_empty() => {
            let found: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
            Some(format!(
                "model repository '{shown}' has no model directory; the file of a model that lies there itself is named {}; \
                 found {}",
                list_files(files),
                list_names(&found)
            ))
        }
        _ => None,
    };
    RootLayout::Models { warning }
}

/// Whether a directory has the configuration of a model or a version of one.
fn is_model_dir(dir: &Path) -> bool {
    let entries = if dir.is_dir() { list_dir(dir).unwrap_or_default() } else { Vec::new() };
    entries.iter().any(|(name, is_dir)| match is_dir {
        true => is_version(name),
        false => name == FILE_NAME,
    })
}

/// `'a', 'b', …`
fn list_names(names: &[&str]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(LISTED).map(|name| format!("'{name}'")).collect();
    if names.len() > LISTED {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// The names by which a bare repository is recognised.
pub fn list_files(files: &BTreeSet<String>) -> String {
    let own = files.iter().map(String::as_str);
    let saved = WHOLE_DIRECTORY_FILES.iter().take(1).filter(|_| files.contains(WHOLE_DIRECTORY));
    let all: Vec<String> = own.chain(saved.copied()).map(|name| format!("'{name}'")).collect();
    if all.is_empty() {
        "as an installed backend says, of which there is none".to_owned()
    } else {
        all.join(" or ")
    }
}

#[cfg(test)]
#[path = "bare_layout_tests.rs"]
mod tests;
