//! What a scan of the backend directories finds: files that may be backends, and directories of
//! backends.

use crate::plugin_file::PluginFile;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A file that may be a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub file: PluginFile,
    /// From the file name; the library itself may give another one.
    pub name: String,
    /// Name of the directory `VERSION` around it.
    pub version: Option<String>,
    /// Settings from `plugin.toml`; the command line overrides them.
    pub settings: BTreeMap<String, String>,
    /// About keys of `plugin.toml` that have no meaning. Each names the file and the key.
    pub warnings: Vec<String>,
}

impl Candidate {
    /// A plugin without settings.
    pub fn new(path: PathBuf, name: &str) -> Self {
        Self {
            file: path.into(),
            name: name.to_owned(),
            version: None,
            settings: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }
}

/// A directory `NAME` of a backend directory.
pub struct NamedDir {
    pub name: String,
    pub path: PathBuf,
    /// It contains a plugin.
    pub has_plugin: bool,
    /// Files `libADAPTER_NAME.so` in it, by `ADAPTER`.
    pub foreign: Vec<(String, PathBuf)>,
}
