//! A temporary model repository.

use crate::install::root;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A model repository, removed when dropped.
pub struct Repository {
    dir: TempDir,
}

impl Repository {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("trtserver-models-").tempdir();
        Repository { dir: dir.unwrap_or_else(|e| panic!("no temporary directory: {e}")) }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file and creates its folders.
    pub fn file(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        make_folder(path.parent().unwrap_or(&path));
        fs::write(&path, contents)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        path
    }

    /// A model with this configuration and an empty version 1.
    pub fn model(&self, name: &str, config: &str) {
        self.file(Path::new(name).join("config.pbtxt"), config);
        self.version(name, 1);
    }

    /// Adds an empty version.
    pub fn version(&self, model: &str, number: i64) {
        make_folder(&self.path().join(model).join(number.to_string()));
    }

    /// Copies a model of the checkout under its own name.
    pub fn copy(&self, model: &Path) {
        let from = root().join(model);
        let name = from.file_name().unwrap_or_else(|| panic!("{} has no name", from.display()));
        copy(&from, &self.path().join(name));
    }

    pub fn remove(&self, model: &str) {
        let path = self.path().join(model);
        fs::remove_dir_all(&path)
            .unwrap_or_else(|e| panic!("cannot remove {}: {e}", path.display()));
    }

    /// Removes everything, the directory itself included.
    pub fn remove_all(&self) {
        fs::remove_dir_all(self.path())
            .unwrap_or_else(|e| panic!("cannot remove {}: {e}", self.path().display()));
    }

    /// Copies every model of a folder.
    pub fn copy_all(&self, folder: &Path) {
        let from = root().join(folder);
        for entry in list(&from) {
            if entry.join("config.pbtxt").is_file() {
                self.copy(&entry);
            }
        }
    }
}

impl Default for Repository {
    fn default() -> Self {
        Self::new()
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|e| panic!("cannot list {}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths
}

fn make_folder(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|e| panic!("cannot make {}: {e}", path.display()));
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap_or_else(|e| panic!("cannot copy {}: {e}", from.display()));
        return;
    }
    make_folder(to);
    for entry in list(from) {
        if let Some(name) = entry.file_name() {
            copy(&entry, &to.join(name));
        }
    }
}

/// A configuration for the test plugin: OUTPUT0 is INPUT0, FP32 of any length, up to 8 a batch. For
/// the parameters see tests/plugins/probe.
pub fn probe(name: &str, parameters: &[(&str, &str)]) -> String {
    let config = format!(
        r#"name: "{name}"
backend: "probe"
max_batch_size: 8
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
"#
    );
    config + &self::parameters(parameters)
}

/// `parameters` of a configuration.
pub fn parameters(parameters: &[(&str, &str)]) -> String {
    let line = |(key, value): &(&str, &str)| {
        format!("parameters: {{ key: \"{key}\" value: {{ string_value: \"{value}\" }} }}\n")
    };
    parameters.iter().map(line).collect()
}
