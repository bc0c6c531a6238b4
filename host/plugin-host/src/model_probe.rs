//! Asks a backend whether a version directory holds a model of one of its platforms: the extension
//! `trts.model_probe`.

use super::backend::PluginBackend;
use super::crash_report;
use super::descriptors::{ProbeFacts, ProbeHold};
use super::isolation::{self, Isolation};
use super::library::table;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_api::abi::extensions::NO_ENTRY;
use trtserver_proto::v2::ModelConfig;

impl PluginBackend {
    /// The name of the file or directory that is a model of the platform; `None` if the platform's
    /// default file decides. The backend is not opened for it. It is asked in a child process if
    /// the model of `config` would run in one.
    ///
    /// # Errors
    /// Why no entry is such a model.
    pub fn probe(&self, config: &ModelConfig, facts: &ProbeFacts<'_>) -> Result<Option<String>> {
        if isolation::choose_isolation(config, self.isolation)? == Isolation::None {
            return self.probe_locally(facts);
        }
        let limits = self.limits.for_model(config)?;
        match self.child_processes()?.probe_model(&self.file, &self.settings, limits, facts)? {
            // The plugin controls its process.
            Some(name) if !facts.entries.iter().any(|(entry, _)| *entry == name) => {
                Err(self.unknown_entry(facts, &format!("{name:?}")))
            }
            found => Ok(found),
        }
    }

    /// As [`PluginBackend::probe`], always in this process.
    ///
    /// # Errors
    /// Why no entry is such a model.
    pub fn probe_locally(&self, facts: &ProbeFacts<'_>) -> Result<Option<String>> {
        let Some(extension) = table::model_probe(self.table()?) else { return Ok(None) };
        let hold = ProbeHold::new(facts);
        let mut found = NO_ENTRY;
        let entered = self.subject.enter(&crash_report::MODEL_PROBE);
        // SAFETY: the descriptor lives through the call.
        let error = unsafe { (extension.model_probe)(hold.desc(), &raw mut found) };
        drop(entered);
        self.check(error, "model_probe", facts.model)?;
        if found == NO_ENTRY {
            return Ok(None);
        }
        match facts.entries.get(found as usize) {
            Some((name, _)) => Ok(Some(name.clone())),
            None => Err(self.unknown_entry(facts, &format!("entry {found}"))),
        }
    }

    fn unknown_entry(&self, facts: &ProbeFacts<'_>, what: &str) -> Error {
        Error::internal(format!(
            "model_probe of backend '{}' returned {what}, which is not among the {} entries of '{}'",
            self.facts.name,
            facts.entries.len(),
            facts.version_dir.display()
        ))
    }
}
