//! The file of a backend: a plugin, or a library of another server that is opened through an
//! adapter.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use trtserver_library_file::FileStamp;

/// The file that a backend is opened from: a plugin, or an adapter with the library that it opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginFile {
    /// The plugin; of an adapted backend, the adapter.
    pub library: PathBuf,
    pub adapted: Option<AdaptedLibrary>,
}

/// What an adapter is asked to open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdaptedLibrary {
    /// Name of the adapter.
    pub adapter: String,
    /// Name of the backend: passed to `backend_open`.
    pub name: String,
    /// The adapted library, or the script of a backend without a library. Its directory is passed
    /// to `backend_open`.
    pub file: PathBuf,
    /// Default model file, which the adapter's `plugin.toml` has.
    pub default_file: Option<String>,
}

/// Identity of the files of a backend: another name of the same plugin has the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub library: FileStamp,
    /// Name and file of an adapted backend: several may be links to one file.
    adapted: Option<(String, FileStamp)>,
}

impl From<PathBuf> for PluginFile {
    fn from(library: PathBuf) -> Self {
        Self { library, adapted: None }
    }
}

impl PluginFile {
    /// The file that an operator has put there for this backend.
    pub fn path(&self) -> &Path {
        self.adapted.as_ref().map_or(&self.library, |adapted| &adapted.file)
    }

    /// # Errors
    /// A file does not exist.
    pub fn identity(&self) -> io::Result<Identity> {
        let adapted = match &self.adapted {
            Some(AdaptedLibrary { name, file, .. }) => Some((name.clone(), FileStamp::read(file)?)),
            None => None,
        };
        Ok(Identity { library: FileStamp::read(&self.library)?, adapted })
    }
}
