//! Entries of repositories and model directories that a load would ignore or could not read.

use super::CheckFinding;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trtserver_base::disk::is_ignored;
use trtserver_base::regular_file;
use trtserver_model_config::FILE_NAME;
use trtserver_model_config::version_dirs::VersionDirs;

/// Entries of one model, at most.
const MAX_ENTRIES: usize = 100_000;

/// Names of the model directories in `root`. Entries that look like a model but are not one become
/// findings.
pub fn list_model_dirs(root: &Path, findings: &mut Vec<CheckFinding>) -> Vec<String> {
    let mut models = Vec::new();
    for path in list_entries(root, findings) {
        let name = path.file_name().unwrap_or_default();
        let Some(name) = name.to_str() else {
            let message = format!("ignored: the name {name:?} is not UTF-8");
            findings.push(CheckFinding::warning("repository", path, message));
            continue;
        };
        if is_ignored(name) {
            continue;
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => models.push(name.to_owned()),
            // Other files beside the models are allowed.
            Ok(_) => {}
            Err(e) => {
                findings.push(CheckFinding::warning("repository", path, unreachable_text(&e)))
            }
        }
    }
    models
}

/// Looks at every file below the directory of a model.
pub fn walk_model_files(dir: &Path, findings: &mut Vec<CheckFinding>) {
    version_names(dir, findings);
    let (mut visited, mut seen) = (BTreeSet::new(), 0);
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        seen += 1;
        if seen > MAX_ENTRIES {
            let message =
                format!("has more than {MAX_ENTRIES} entries; the others were not checked");
            findings.push(CheckFinding::warning("file", dir.to_owned(), message));
            return;
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                if visited.insert((found.dev(), found.ino())) {
                    let inside = list_entries(&path, findings).into_iter();
                    // The configuration is read by its own check; ignored entries are not part of a
                    // model.
                    pending.extend(
                        inside.filter(|p| !is_ignored_path(p) && *p != dir.join(FILE_NAME)),
                    );
                } else {
                    let message = "a link to a directory that is part of the model already";
                    findings.push(CheckFinding::warning("file", path, message));
                }
            }
            Ok(_) => {
                if let Err(e) = regular_file::open_regular_file(&path) {
                    findings.push(CheckFinding::error(
                        "file",
                        path,
                        format!("cannot be read: {e}"),
                    ));
                }
            }
            Err(e) => findings.push(CheckFinding::warning("file", path, unreachable_text(&e))),
        }
    }
}

/// Versions of whose directory only a part of the name is the number.
fn version_names(dir: &Path, findings: &mut Vec<CheckFinding>) {
    let Ok(found) = VersionDirs::read(dir) else { return };
    for (number, name) in found.versions {
        if number.to_string() != name {
            let message =
                format!("'{name}' counts as version {number}: only its leading digits are read");
            findings.push(CheckFinding::warning("versions", dir.join(name), message));
        }
    }
}

fn is_ignored_path(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(is_ignored)
}

/// The paths in a directory, sorted.
fn list_entries(dir: &Path, findings: &mut Vec<CheckFinding>) -> Vec<PathBuf> {
    let read = fs::read_dir(dir).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    match read {
        Ok(entries) => {
            let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
            paths.sort();
            paths
        }
        Err(e) => {
            let message = format!("the directory cannot be read: {e}");
            findings.push(CheckFinding::error("file", dir.to_owned(), message));
            Vec::new()
        }
    }
}

/// Finding text for an entry that exists, but whose target does not.
fn unreachable_text(e: &std::io::Error) -> String {
    format!("ignored: it cannot be followed: {e}")
}
