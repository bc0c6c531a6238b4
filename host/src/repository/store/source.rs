//! What a store of model directories can do: list models, take a fingerprint, provide the files of a model.

use super::ModelDir;
use crate::error::Result;
use crate::plugin::CancelFlag;
use crate::repository::lifecycle::Fingerprint;
use std::path::Path;
use std::sync::Arc;

/// One model repository. All calls may block, and are never made on network threads.
pub trait Store: Send + Sync {
    /// Path or URL for messages, without credentials.
    fn location(&self) -> &str;

    /// The directory of a repository on local disk, which is polled without reading what has not changed.
    fn local_root(&self) -> Option<&Path> {
        None
    }

    /// Names of the model directories, sorted.
    ///
    /// # Errors
    /// The repository cannot be listed. This says nothing about its models.
    fn models(&self) -> Result<Vec<String>>;

    /// Whether there is a directory of that name, which is a plain file name.
    ///
    /// # Errors
    /// As for `models`.
    fn has(&self, model: &str) -> Result<bool>;

    /// What the files of a model look like now.
    ///
    /// # Errors
    /// The files cannot be listed.
    fn fingerprint(&self, model: &str) -> Result<Fingerprint>;

    /// A local directory with the files of a model. The content of its version directories may follow later, see
    /// `ModelDir::fetch`.
    ///
    /// # Errors
    /// The files cannot be read, the local copy cannot be written, or `cancel` is set.
    fn materialise(&self, model: &str, cancel: &CancelFlag) -> Result<Arc<ModelDir>>;
}

/// A model directory of one repository.
#[derive(Clone)]
pub struct ModelSource {
    pub store: Arc<dyn Store>,
    pub name: String,
}

impl ModelSource {
    /// See [`Store::fingerprint`].
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        self.store.fingerprint(&self.name)
    }

    /// See [`Store::materialise`].
    pub fn materialise(&self, cancel: &CancelFlag) -> Result<Arc<ModelDir>> {
        self.store.materialise(&self.name, cancel)
    }
}
