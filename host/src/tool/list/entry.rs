//! One plugin file of the list.

use super::describe::Facts;
use super::libraries::Missing;
use serde::Serialize;
use std::path::PathBuf;

/// See the module text.
#[derive(Serialize)]
pub struct Entry {
    pub file: PathBuf,
    /// As the backend declares it, else from the file's name.
    pub name: String,
    #[serde(flatten)]
    pub facts: Facts,
    /// `process` or `none`.
    pub isolation: Option<String>,
    pub usable: bool,
    /// Why it cannot be used.
    pub problem: Option<String>,
    pub missing_libraries: Vec<Missing>,
    /// What the server would log about its `plugin.toml`.
    pub warnings: Vec<String>,
}
