//! A model repository on local disk: its directories are used where they are.

use super::{ModelDir, ModelStore};
use crate::fingerprint::ModelFingerprint;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::disk::list_dir;
use trtserver_base::error::{Error, Result};

/// A directory with one directory per model.
pub struct LocalStore {
    root: PathBuf,
    location: String,
    warning: Option<String>,
}

impl LocalStore {
    /// `warning`: what is wrong with its layout.
    pub fn new(root: &Path, warning: Option<String>) -> Self {
        Self { root: root.to_owned(), location: root.display().to_string(), warning }
    }
}

impl ModelStore for LocalStore {
    fn location(&self) -> &str {
        &self.location
    }

    fn local_root(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn layout_warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    fn models(&self) -> Result<Vec<String>> {
        let entries = list_dir(&self.root)?.into_iter();
        Ok(entries.filter(|(_, is_dir)| *is_dir).map(|(name, _)| name).collect())
    }

    fn has(&self, model: &str) -> Result<bool> {
        Ok(self.root.join(model).is_dir())
    }

    fn fingerprint(&self, model: &str) -> Result<ModelFingerprint> {
        let dir = self.root.join(model);
        ModelFingerprint::from_dir(&dir)
            .map_err(|e| Error::internal(format!("'{}': {e}", dir.display())))
    }

    fn materialise(&self, model: &str, _: &CancelFlag) -> Result<Arc<ModelDir>> {
        Ok(ModelDir::in_place(self.root.join(model)))
    }
}
