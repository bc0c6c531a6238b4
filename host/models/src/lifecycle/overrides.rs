//! Overrides in a load request: a configuration (`config`) and files (`file:VERSION/PATH`), which
//! replace the configuration and the files in the repository.

use bytes::Bytes;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Error, Result};
use trtserver_model_files::stays_inside;
use trtserver_model_store::{ModelDir, VersionFiles};
use trtserver_proto::v2::ModelConfig;

/// Name prefix of the private directories.
const PREFIX: &str = "trtserver-model-";

/// The configuration and the files that a load request brings instead of the repository's. The
/// default is a load from the repository.
#[derive(Clone, Debug, Default)]
pub struct LoadOverrides {
    /// Replaces the configuration file.
    pub config: Option<ModelConfig>,
    /// Path in the model's directory, and content. If there are any, they are all files of the
    /// model.
    pub files: Vec<(String, Bytes)>,
}

impl LoadOverrides {
    /// Whether `path` can be that of a file.
    pub fn is_file_path(path: &str) -> bool {
        let is_file = Path::new(path).file_name().is_some() && !path.ends_with('/');
        is_file && !path.starts_with('/') && !path.contains('\0') && stays_inside(path)
    }

    /// A private directory with the files, which is removed with its last user.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn directory(&self) -> Result<Arc<ModelDir>> {
        let fail = |what: &str, e: io::Error| {
            Error::internal(format!("cannot write {what} of the load request: {e}"))
        };
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir();
        let dir = dir.map_err(|e| fail("the directory", e))?;
        for (path, content) in &self.files {
            let file = dir.path().join(path);
            let folder = file.parent().unwrap_or(dir.path());
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&file, content))
                .map_err(|e| fail(&format!("file '{path}'"), e))?;
        }
        Ok(ModelDir::copied(dir.path().to_owned(), Box::new(PrivateDir { _dir: dir })))
    }
}

/// Keeps a private directory.
struct PrivateDir {
    _dir: TempDir,
}

impl VersionFiles for PrivateDir {
    fn fetch(&self, _: &[&str], _: &CancelFlag) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "overrides_tests.rs"]
mod tests;
