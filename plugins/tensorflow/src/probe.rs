//! Recognition of model files: any one SavedModel directory, or a GraphDef of the default name
//! alone. Reads names only.

use crate::{DEFAULT_FILE, SAVED_MODEL};
use std::path::Path;
use trtserver_plugin_api::author::{DirEntry, Error, ModelProbe};

/// A SavedModel directory contains one of them.
const SAVED_MODEL_FILES: [&str; 2] = ["saved_model.pb", "saved_model.pbtxt"];

/// The model of the platform in the version directory.
///
/// # Errors
/// The directory holds no model, or more than one.
pub fn probe_files(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
    // Hidden files such as `.DS_Store` belong to no model.
    let (dirs, files): (Vec<_>, Vec<_>) =
        probe.entries().filter(|entry| !entry.name.starts_with('.')).partition(|e| e.is_dir);
    match probe.platform() {
        SAVED_MODEL => saved_model(Path::new(probe.version_dir()), &dirs),
        _ => graph_def(&files),
    }
    .map(Some)
}

fn saved_model<'a>(version_dir: &Path, dirs: &[DirEntry<'a>]) -> Result<&'a str, Error> {
    let is_model = |dir: &&DirEntry<'_>| {
        SAVED_MODEL_FILES.iter().any(|file| version_dir.join(dir.name).join(file).is_file())
    };
    let found: Vec<&'a str> = dirs.iter().filter(is_model).map(|dir| dir.name).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => Err(Error::not_found(format_args!(
            "expected a directory with a file '{}'",
            SAVED_MODEL_FILES.join("' or '")
        ))),
        many => Err(Error::invalid(format_args!(
            "expected one SavedModel directory, found '{}'",
            many.join("', '")
        ))),
    }
}

fn graph_def<'a>(files: &[DirEntry<'a>]) -> Result<&'a str, Error> {
    match files {
        [DirEntry { name: name @ DEFAULT_FILE, .. }] => Ok(name),
        [] => Err(Error::not_found(format_args!("expected the file '{DEFAULT_FILE}'"))),
        files => {
            let names: Vec<_> = files.iter().map(|file| file.name).collect();
            Err(Error::not_found(format_args!(
                "expected '{DEFAULT_FILE}' as the only file, found '{}'",
                names.join("', '")
            )))
        }
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
