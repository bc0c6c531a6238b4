//! Scans `--backend-dir` directories for plugin files.
//!
//! A plugin is `libtrtserver_NAME.so` in the directory itself, in `NAME/` or in `NAME/VERSION/`; a
//! `plugin.toml` beside it gives defaults for its settings. Several versions of one backend may be
//! installed. Names that begin with a dot are skipped: tools use them for files that are still
//! being written. Libraries of other servers are found in `NAME/` (`adapters`).

use super::adapters::{self, Adapter, ScannedFile};
use super::candidate::{Candidate, NamedDir};
use super::manifest::{MANIFEST, read_manifest};
use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use trtserver_base::error::Error;

/// Result of a scan.
#[derive(Default)]
pub struct Listing {
    /// Plugins, sorted by path, directory by directory; then adapted backends.
    pub candidates: Vec<Candidate>,
    /// Adapted backends that lack their adapter or another library.
    pub unopenable: Vec<(Candidate, Error)>,
    /// Adapters, in the order of preference.
    pub(super) adapters: Vec<Adapter>,
    /// Directories `NAME` in which adapted backends may be.
    pub(super) named: Vec<NamedDir>,
    /// Libraries whose `plugin.toml` is malformed or unreadable.
    pub bad_manifests: Vec<(Candidate, Error)>,
    /// Directories that could not be read.
    pub unreadable: Vec<(PathBuf, Error)>,
}

/// Lists the plugin files below `dirs`. Adapters are also looked for below `adapter_dirs`, which
/// need not exist.
pub fn scan_directories(dirs: &[PathBuf], adapter_dirs: &[PathBuf]) -> Listing {
    let mut listing = Listing::default();
    for dir in dirs {
        let (before, named) = (listing.candidates.len(), listing.named.len());
        walk_directory(dir, 0, &mut listing);
        listing.candidates[before..].sort_by(|a, b| a.file.library.cmp(&b.file.library));
        listing.named[named..].sort_by(|a, b| a.path.cmp(&b.path));
    }
    for dir in adapter_dirs {
        let mut inside: Vec<_> = std::fs::read_dir(dir).into_iter().flatten().flatten().collect();
        inside.sort_by_key(DirEntry::file_name);
        inside.iter().for_each(|entry| add_adapter(&entry.path(), &mut listing));
    }
    for found in adapters::find_adapted_backends(&listing.adapters, &listing.named) {
        match found {
            ScannedFile::Candidate(candidate) => listing.candidates.push(candidate),
            ScannedFile::BadManifest(candidate, e) => listing.bad_manifests.push((candidate, e)),
            ScannedFile::Unopenable(candidate, e) => listing.unopenable.push((candidate, e)),
        }
    }
    listing
}

/// Lists the plugin files below `dirs`, and those below `defaults` whose backend none of `dirs` has:
/// an installed backend does not compete with one that the operator has added.
pub fn scan_with_defaults(
    dirs: &[PathBuf],
    defaults: &[PathBuf],
    adapter_dirs: &[PathBuf],
) -> Listing {
    let all: Vec<PathBuf> = dirs.iter().chain(defaults).cloned().collect();
    let mut listing = scan_directories(&all, adapter_dirs);
    let is_default = |candidate: &Candidate| is_below(candidate, defaults);
    let Listing { candidates, unopenable, bad_manifests, .. } = &listing;
    let found = candidates.iter();
    let found = found.chain(unopenable.iter().map(|(candidate, _)| candidate));
    let found = found.chain(bad_manifests.iter().map(|(candidate, _)| candidate));
    let added = found.filter(|candidate| !is_default(candidate));
    let added: BTreeSet<String> = added.map(|candidate| candidate.name.clone()).collect();
    let counts = |candidate: &Candidate| !is_default(candidate) || !added.contains(&candidate.name);
    listing.candidates.retain(counts);
    listing.unopenable.retain(|(candidate, _)| counts(candidate));
    listing.bad_manifests.retain(|(candidate, _)| counts(candidate));
    listing
}

/// Whether the file of `candidate` is in one of `dirs`.
pub(super) fn is_below(candidate: &Candidate, dirs: &[PathBuf]) -> bool {
    dirs.iter().any(|dir| candidate.file.path().starts_with(dir))
}

/// Adds the adapter in `dir`, if its manifest declares one.
fn add_adapter(dir: &Path, found: &mut Listing) {
    match read_manifest(dir) {
        Ok(mut manifest) => {
            if let Some(keys) = manifest.adapter.take() {
                found.adapters.push(Adapter::new(dir, keys, manifest));
            }
        }
        Err(e) => {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            found.bad_manifests.push((Candidate::new(dir.join(MANIFEST), &name), e));
        }
    }
}

const PREFIX: &str = "libtrtserver_";
fn walk_directory(dir: &Path, depth: usize, found: &mut Listing) {
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
    let (mut has_plugin, mut has_manifest, mut foreign) = (false, false, Vec::new());
    for entry in entries.flatten() {
        let (path, file) = (entry.path(), entry.file_name());
        if file.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        has_manifest |= file == MANIFEST;
        if is_directory(&entry) {
            if depth < 2 {
                walk_directory(&path, depth + 1, found);
            }
            continue;
        }
        let library = file.to_str().and_then(|f| f.strip_suffix(std::env::consts::DLL_SUFFIX));
        let Some(name) = library.and_then(|f| f.strip_prefix(PREFIX)) else {
            let adapter = library.and_then(|f| f.strip_prefix("lib")).and_then(|f| {
                let (adapter, name) = f.split_once('_')?;
                (dir.file_name()? == name).then(|| adapter.to_owned())
            });
            foreign.extend(adapter.map(|adapter| (adapter, path)));
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
        has_plugin = true;
        let version = dir.file_name().filter(|_| depth == 2);
        let version = version.map(|v| v.to_string_lossy().into_owned());
        let mut candidate = Candidate { version, ..Candidate::new(path, name) };
        match read_manifest(dir) {
            Ok(manifest) => {
                (candidate.settings, candidate.warnings) = (manifest.settings, manifest.warnings);
                found.candidates.push(candidate);
            }
            Err(e) => found.bad_manifests.push((candidate, e)),
        }
    }
    if depth == 1 {
        if has_manifest && !has_plugin {
            add_adapter(dir, found);
        }
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.named.push(NamedDir { name, path: dir.to_owned(), has_plugin, foreign });
    }
}

/// Links are followed. Each load of a model scans, so the system is asked for the files of links
/// only.
fn is_directory(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        _ => entry.path().is_dir(),
    }
}

#[cfg(test)]
#[path = "directories_tests.rs"]
mod tests;
