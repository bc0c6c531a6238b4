//! A bare repository: a directory that holds the files of one model, without directories for the
//! model and its version, as KServe mounts it.
//!
//! ```text
//!   DIR/model.onnx, DIR/labels.txt     what the user has
//!   NAME/labels.txt, NAME/1/model.onnx what a load sees: a private directory of links
//! ```

use super::{ModelDir, ModelStore, VersionFiles};
use crate::bare_layout::{BareEntry, VersionEntry, find_bare_entry};
use crate::fingerprint::ModelFingerprint;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::disk::{is_entry, is_ignored, list_dir};
use trtserver_base::error::{Error, Result};
use trtserver_model_config::FILE_NAME;

/// Name prefix of the private directories.
const PREFIX: &str = "trtserver-model-";
/// Name of the version's directory.
pub const BARE_VERSION: &str = "1";

/// How bare repositories are recognised, and what names their model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BareSettings {
    /// Files and directories that are a model: the default names of the installed backends.
    pub files: BTreeSet<String>,
    /// `--model-name`.
    pub name: Option<String>,
    /// The environment's `INFERENCE_SERVICE_NAME`.
    pub service: Option<String>,
}

/// A directory that is one model.
pub struct BareStore {
    /// Absolute, with links: what they lead to may be exchanged.
    root: PathBuf,
    location: String,
    name: String,
    files: BTreeSet<String>,
}

impl BareStore {
    /// # Errors
    /// The current directory is unknown.
    pub fn open(root: &Path, name: String, files: &BTreeSet<String>) -> Result<Self> {
        let location = root.display().to_string();
        let root = std::path::absolute(root)
            .map_err(|e| Error::internal(format!("model repository '{location}': {e}")))?;
        Ok(Self { root, location, name, files: files.clone() })
    }

    /// What the directory is recognised by; `None` while it is being replaced.
    fn entry(&self) -> Result<Option<BareEntry>> {
        Ok(find_bare_entry(&list_dir(&self.root)?, &self.files))
    }

    /// Links to the files of the model, and to those of its version.
    fn link_files(&self, dir: &Path) -> Result<()> {
        let entries = list_dir(&self.root)?;
        let entry = find_bare_entry(&entries, &self.files);
        let version = dir.join(BARE_VERSION);
        let link = |name: &str, to: &Path| {
            symlink(self.root.join(name), to.join(name)).map_err(|e| self.unlinkable(&e))
        };
        std::fs::create_dir(&version).map_err(|e| self.unlinkable(&e))?;
        if let Some(BareEntry::WholeDirectory { as_entry, .. }) = &entry {
            symlink(&self.root, version.join(as_entry)).map_err(|e| self.unlinkable(&e))?;
        }
        for (name, is_dir) in &entries {
            let place =
                entry.as_ref().map_or(VersionEntry::Model, |entry| entry.place(name, *is_dir));
            match place {
                VersionEntry::Model => link(name, dir)?,
                VersionEntry::Version => link(name, &version)?,
                VersionEntry::None => {}
            }
        }
        Ok(())
    }

    fn unlinkable(&self, e: &io::Error) -> Error {
        Error::internal(format!(
            "model '{}' of the bare repository '{}' needs a directory of links in '{}', which TMPDIR can change: {e}",
            self.name,
            self.location,
            std::env::temp_dir().display()
        ))
    }
}

impl ModelStore for BareStore {
    fn location(&self) -> &str {
        &self.location
    }

    fn model_path(&self, _: &str) -> PathBuf {
        PathBuf::from(&self.location)
    }

    fn models(&self) -> Result<Vec<String>> {
        Ok(self.entry()?.map(|_| self.name.clone()).into_iter().collect())
    }

    fn has(&self, model: &str) -> Result<bool> {
        Ok(model == self.name && self.entry()?.is_some())
    }

    fn fingerprint(&self, _: &str) -> Result<ModelFingerprint> {
        ModelFingerprint::from_dir(&self.root)
            .map_err(|e| Error::internal(format!("'{}': {e}", self.location)))
    }

    fn materialise(&self, _: &str, _: &CancelFlag) -> Result<Arc<ModelDir>> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir();
        let dir = dir.map_err(|e| self.unlinkable(&e))?;
        self.link_files(dir.path())?;
        let (path, origin) = (dir.path().to_owned(), PathBuf::from(&self.location));
        Ok(ModelDir::linked(path, Box::new(LinkDir { _dir: dir }), origin))
    }
}

/// Keeps a directory of links, which are complete from the start.
struct LinkDir {
    _dir: TempDir,
}

impl VersionFiles for LinkDir {
    fn fetch(&self, _: &[&str], _: &CancelFlag) -> Result<()> {
        Ok(())
    }
}

impl BareSettings {
    /// The name of the model in the bare repository `root`. `only`: no other repository is bare.
    ///
    /// # Errors
    /// The variable holds no name of a model, or nothing names the model.
    pub fn model_name(&self, root: &Path, only: bool) -> Result<String> {
        if let Some(name) = self.name.as_ref().filter(|_| only) {
            return Ok(name.clone());
        }
        if let Some(name) = self.service.as_ref().filter(|_| only) {
            return match is_model_name(name) {
                true => Ok(name.clone()),
                false => Err(Error::invalid(format!(
                    "INFERENCE_SERVICE_NAME={name}: expected the name of a model, without path separators"
                ))),
            };
        }
        let config = trtserver_model_config::read_model_config(&root.join(FILE_NAME));
        let configured = config.ok().flatten().map(|config| config.name);
        let resolved = root.canonicalize().ok();
        let own = root.file_name().or_else(|| resolved.as_ref()?.file_name());
        let own = own.and_then(|name| name.to_str()).map(str::to_owned);
        let named = [configured, own].into_iter().flatten().find(|name| is_model_name(name));
        named.ok_or_else(|| {
            let root = root.display();
            Error::invalid(format!(
                "the name of the directory '{root}' cannot be that of a model: name it with --model-name"
            ))
        })
    }
}

/// Whether a model can have this name.
pub fn is_model_name(name: &str) -> bool {
    is_entry(name) && !is_ignored(name)
}

#[cfg(test)]
#[path = "bare_tests.rs"]
mod tests;
