//! Scans `--backend-dir` directories for plugin files.
//!
//! A plugin is `libtrtserver_NAME.so` in the directory itself, in `NAME/` or in `NAME/VERSION/`; a `plugin.toml` beside
//! it gives defaults for its settings. Several versions of one backend may be installed. Names that begin with a dot
//! are skipped: tools use them for files that are still being written.

use crate::error::{Error, Result};
use crate::regular_file;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file that may be a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub path: PathBuf,
    /// From the file name; the library itself may give another one.
    pub name: String,
    /// Name of the directory `VERSION` around it.
    pub version: Option<String>,
    /// Settings from `plugin.toml`; the command line overrides them.
    pub settings: BTreeMap<String, String>,
    /// About keys of `plugin.toml` that have no meaning. Each names the file and the key.
    pub warnings: Vec<String>,
}

/// Result of a scan.
#[derive(Default)]
pub struct Listing {
    /// Sorted by path, directory by directory.
    pub candidates: Vec<Candidate>,
    /// Libraries whose `plugin.toml` is malformed or unreadable.
    pub bad_manifests: Vec<(Candidate, Error)>,
    /// Directories that could not be read.
    pub unreadable: Vec<(PathBuf, Error)>,
}

/// Lists the plugin files below `dirs`.
pub fn scan(dirs: &[PathBuf]) -> Listing {
    let mut listing = Listing::default();
    for dir in dirs {
        let before = listing.candidates.len();
        walk(dir, 0, &mut listing);
        listing.candidates[before..].sort_by(|a, b| a.path.cmp(&b.path));
    }
    listing
}

/// `plugin.toml` beside a backend.
#[derive(Deserialize)]
struct Manifest {
    /// `none` or `process`. Kept among the settings, where the host takes it out again.
    isolation: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, toml::Value>,
}

/// The keys of [`Manifest`].
const KEYS: [&str; 2] = ["isolation", "settings"];
const PREFIX: &str = "libtrtserver_";
const MANIFEST: &str = "plugin.toml";
/// Far above the size of any `plugin.toml`.
const MAX_MANIFEST: u64 = 1 << 20;

fn walk(dir: &Path, depth: usize, found: &mut Listing) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        // Removed after its parent was listed.
        Err(e) if depth > 0 && e.kind() == std::io::ErrorKind::NotFound => return,
        Err(e) => {
            let text = format!("unable to read backend directory '{}': {e}", dir.display());
            found.unreadable.push((dir.to_owned(), Error::internal(text)));
            return;
        }
    };
    for entry in entries.flatten() {
        let (path, file) = (entry.path(), entry.file_name());
        if file.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            if depth < 2 {
                walk(&path, depth + 1, found);
            }
            continue;
        }
        let Some(name) = file
            .to_str()
            .and_then(|f| f.strip_prefix(PREFIX))
            .and_then(|f| f.strip_suffix(std::env::consts::DLL_SUFFIX))
        else {
            continue;
        };
        // NAME/ and NAME/VERSION/ are for the library of NAME alone.
        let owner = match depth {
            0 => None,
            1 => dir.file_name(),
            _ => dir.parent().and_then(Path::file_name),
        };
        if owner.is_some_and(|o| o != name) {
            continue;
        }
        let version = dir.file_name().filter(|_| depth == 2);
        let version = version.map(|v| v.to_string_lossy().into_owned());
        let (settings, warnings) = (BTreeMap::new(), Vec::new());
        let mut candidate = Candidate { path, name: name.to_owned(), version, settings, warnings };
        match manifest(dir) {
            Ok((settings, warnings)) => {
                (candidate.settings, candidate.warnings) = (settings, warnings);
                found.candidates.push(candidate);
            }
            Err(e) => found.bad_manifests.push((candidate, e)),
        }
    }
}

/// Where the `plugin.toml` of a library would be.
pub fn manifest_of(library: &Path) -> PathBuf {
    library.with_file_name(MANIFEST)
}

/// The settings of the `plugin.toml` in `dir`, and warnings about its unknown keys.
fn manifest(dir: &Path) -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let path = dir.join(MANIFEST);
    let unreadable = |e: &dyn std::fmt::Display| {
        Error::internal(format!("unable to read '{}': {e}", path.display()))
    };
    let bytes = match regular_file::read(&path, MAX_MANIFEST) {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(size)) => {
            let text = format!("it has {size} bytes, more than {MAX_MANIFEST}");
            return Err(unreadable(&text));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(e) => return Err(unreadable(&e)),
    };
    let text = String::from_utf8(bytes).map_err(|e| unreadable(&e))?;
    let malformed = |e: toml::de::Error| {
        Error::invalid(format!("'{}': {}", path.display(), e.to_string().trim_end()))
    };
    let manifest: Manifest = toml::from_str(&text).map_err(malformed)?;
    let table: toml::Table = toml::from_str(&text).map_err(malformed)?;
    let unknown = table.keys().filter(|key| !KEYS.contains(&key.as_str()));
    let warnings = unknown.map(|key| unknown_key(&path, key)).collect();
    let plain = |value: toml::Value| match value {
        toml::Value::String(s) => s,
        other => other.to_string(),
    };
    let mut settings: BTreeMap<_, _> =
        manifest.settings.into_iter().map(|(k, v)| (k, plain(v))).collect();
    if let Some(isolation) = manifest.isolation {
        settings.insert(crate::plugin::isolation::KEY.to_owned(), isolation);
    }
    Ok((settings, warnings))
}

/// A key of a later version is no reason to refuse a backend, a misspelled one must not pass in silence.
fn unknown_key(path: &Path, key: &str) -> String {
    let nearest = KEYS.into_iter().min_by_key(|known| strsim::levenshtein(key, known));
    let near = nearest.filter(|known| strsim::levenshtein(key, known) <= 1 + key.len() / 4);
    let hint = match near {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("settings of the backend belong into [{}]", KEYS[1]),
    };
    format!("'{}': unknown key '{key}' is ignored; {hint}", path.display())
}

#[cfg(test)]
#[path = "directories_tests.rs"]
mod tests;
