//! One plugin file of the list.

use super::describe::PluginDescription;
use super::libraries::MissingLibrary;
use serde::Serialize;
use std::path::PathBuf;
use trtserver_base::error::Error;
use trtserver_plugin_host::discovery::candidate::Candidate;

/// One plugin file as `trtserver plugin list` shows it; the fields are the keys of its JSON.
#[derive(Serialize)]
pub struct ListEntry {
    pub file: PathBuf,
    /// Name of the adapter that opens the file.
    pub adapter: Option<String>,
    /// As the backend declares it, else from the file's name.
    pub name: String,
    #[serde(flatten)]
    pub facts: PluginDescription,
    /// `process` or `none`.
    pub isolation: Option<String>,
    pub usable: bool,
    /// Why it cannot be used.
    pub problem: Option<String>,
    pub missing_libraries: Vec<MissingLibrary>,
    /// What the server would log about its `plugin.toml`.
    pub warnings: Vec<String>,
}

impl ListEntry {
    /// A file that no adapter can open.
    pub fn unopenable(candidate: Candidate, reason: Error) -> Self {
        let adapted = candidate.file.adapted.as_ref();
        Self {
            file: candidate.file.path().to_owned(),
            adapter: adapted.map(|adapted| adapted.adapter.clone()),
            name: candidate.name,
            facts: PluginDescription::default(),
            isolation: None,
            usable: false,
            problem: Some(reason.message),
            missing_libraries: Vec::new(),
            warnings: candidate.warnings,
        }
    }
}
