//! The local directory of one model: the one in the repository, or a copy that ends with its last
//! user.

use crate::bare::BARE_VERSION;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::Result;
use trtserver_model_config::WHOLE_DIRECTORY;

/// A model's directory on local disk. Instances hold it, because their backends may read it at any
/// time.
pub struct ModelDir {
    path: PathBuf,
    copy: Option<Box<dyn VersionFiles>>,
    /// The bare repository to which the files of `path` are links.
    origin: Option<PathBuf>,
}

/// The files of a copy that are not there yet. The copy is removed when this is dropped.
pub trait VersionFiles: Send + Sync {
    /// See [`ModelDir::fetch`].
    fn fetch(&self, versions: &[&str], cancel: &CancelFlag) -> Result<()>;
}

impl ModelDir {
    /// A directory of a repository on local disk.
    pub fn in_place(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, copy: None, origin: None })
    }

    pub fn copied(path: PathBuf, copy: Box<dyn VersionFiles>) -> Arc<Self> {
        Arc::new(Self { path, copy: Some(copy), origin: None })
    }

    /// A directory of links to the files of the bare repository `origin`.
    pub fn linked(path: PathBuf, copy: Box<dyn VersionFiles>, origin: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, copy: Some(copy), origin: Some(origin) })
    }

    /// Whether it is that of a bare repository.
    pub fn is_bare(&self) -> bool {
        self.origin.is_some()
    }

    /// A text with the paths of a bare repository in place of those of the links to them.
    pub fn show_origin(&self, text: String) -> String {
        let Some(origin) = self.origin.as_ref() else { return text };
        let (path, origin) = (self.path.display().to_string(), origin.display().to_string());
        let version = format!("{path}/{BARE_VERSION}");
        text.replace(&format!("{version}/{WHOLE_DIRECTORY}"), &origin)
            .replace(&version, &origin)
            .replace(&path, &origin)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the version directories of these names, which in a copy are empty at first: a model
    /// may have many versions, of which few are served.
    ///
    /// # Errors
    /// A file cannot be read or written, or `cancel` is set.
    pub fn fetch(&self, versions: &[&str], cancel: &CancelFlag) -> Result<()> {
        self.copy.as_ref().map_or(Ok(()), |copy| copy.fetch(versions, cancel))
    }
}
