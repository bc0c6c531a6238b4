//! What a store of model directories can do: list models, take a fingerprint, provide the files of
//! a model.

use super::ModelDir;
use crate::fingerprint::ModelFingerprint;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Code, Error, Result};

/// One model repository. All calls may block, and are never made on network threads.
pub trait ModelStore: Send + Sync {
    /// Path or URL for messages, without credentials.
    fn location(&self) -> &str;

    /// The directory of a repository on local disk, which is polled without reading what has not
    /// changed.
    fn local_root(&self) -> Option<&Path> {
        None
    }

    /// Where the model is, for messages.
    fn model_path(&self, model: &str) -> PathBuf {
        self.local_root().unwrap_or(Path::new(self.location())).join(model)
    }

    /// What is wrong with the layout of the repository, as far as models are served in spite of it.
    fn layout_warning(&self) -> Option<&str> {
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
    /// The errors of `models`.
    fn has(&self, model: &str) -> Result<bool>;

    /// What the files of a model look like now.
    ///
    /// # Errors
    /// The files cannot be listed.
    fn fingerprint(&self, model: &str) -> Result<ModelFingerprint>;

    /// What the files of all models look like now, in as few calls of the store as possible.
    ///
    /// # Errors
    /// The errors of `models` and `fingerprint`.
    fn fingerprints(&self) -> Result<BTreeMap<String, ModelFingerprint>> {
        let fingerprint = |name: String| Ok((name.clone(), self.fingerprint(&name)?));
        self.models()?.into_iter().map(fingerprint).collect()
    }

    /// A local directory with the files of a model. The content of its version directories may
    /// follow later, see `ModelDir::fetch`.
    ///
    /// # Errors
    /// The files cannot be read, the local copy cannot be written, or `cancel` is set.
    fn materialise(&self, model: &str, cancel: &CancelFlag) -> Result<Arc<ModelDir>>;
}

/// A model directory of one repository.
#[derive(Clone)]
pub struct ModelSource {
    pub store: Arc<dyn ModelStore>,
    pub name: String,
}

impl ModelSource {
    /// The one directory of the model `name` among `found`.
    ///
    /// # Errors
    /// No model of this name was found, or more than one (`AlreadyExists`).
    pub fn only<'a>(name: &str, found: &'a [Self]) -> Result<&'a Self> {
        match found {
            [source] => Ok(source),
            [] => Err(Error::not_found("no repository has a directory of that name")),
            _ => Err(Error::new(
                Code::AlreadyExists,
                format!("failed to poll model '{name}': not unique across all model repositories"),
            )),
        }
    }

    /// See [`ModelStore::fingerprint`].
    pub fn fingerprint(&self) -> Result<ModelFingerprint> {
        self.store.fingerprint(&self.name)
    }

    /// See [`ModelStore::materialise`].
    pub fn materialise(&self, cancel: &CancelFlag) -> Result<Arc<ModelDir>> {
        self.store.materialise(&self.name, cancel)
    }
}
