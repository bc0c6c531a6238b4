//! Backends: found in directories, opened once, called through one small interface.
//!
//! All knowledge of the binary interface on the host's side, and nearly all of its unsafe code, is here.

pub mod backend; // one backend, and the safe face of its entries
#[cfg(test)]
mod batch_tests; // gathering and scattering
mod declared; // an output against its declaration
mod describe; // descriptors that plugins may point into
mod find; // where backends may lie
mod frame; // a batch as plugins see it
mod gather; // an input of all calls as one block
mod host_calls; // what the host offers plugins
mod isolation; // in the server's process or in one of its own
mod library; // opening a file, with words for what can be wrong
mod memory; // memory that becomes an output
pub mod metric; // metrics that plugins make
mod outputs; // a response while it is built
pub mod process; // models in processes of their own
mod run; // one batch through an instance
mod scatter; // an output of all calls as one block
mod scope; // who speaks
mod slot; // what the handles of a call stand for
mod text; // text and errors across the boundary
mod views; // the flat arrays of a batch

pub use describe::{InstanceFacts, ModelFacts};
pub use frame::{FrameHold, times};
pub use host_calls::set_log_level;
pub use run::Runner;
pub use scope::Patch;
pub use views::{Style, TensorNames};

use crate::error::{Error, Result};
use crate::repository::config::Platforms;
use backend::Backend;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// All backends of this server. Which one serves a model is the model configuration's choice.
pub struct Backends {
    by_name: BTreeMap<String, Arc<Backend>>,
    searched: Vec<PathBuf>,
    /// Files that looked like backends and are none, with the reason; shown when one is missed.
    pub broken: Vec<Error>,
}

impl Backends {
    /// Opens every backend below `dirs`. `settings` by backend name; the empty name is for all.
    ///
    /// A file that cannot be opened is logged and left out: it must not take the others down.
    ///
    /// # Errors
    /// A directory cannot be read; two files claim one name or one platform.
    pub fn open(
        dirs: &[PathBuf],
        settings: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> Result<Self> {
        let mut backends =
            Self { by_name: BTreeMap::new(), searched: dirs.to_vec(), broken: Vec::new() };
        for dir in dirs {
            for candidate in find::candidates(dir)? {
                let mut chosen = settings.get("").cloned().unwrap_or_default();
                chosen.extend(settings.get(&candidate.name).cloned().unwrap_or_default());
                match Backend::load(candidate, &chosen) {
                    Ok(backend) => backends.add(backend)?,
                    Err(e) => {
                        tracing::error!("{e}");
                        backends.broken.push(e);
                    }
                }
            }
        }
        for name in settings.keys().filter(|n| !n.is_empty()) {
            if !backends.by_name.contains_key(name) {
                tracing::warn!("--backend-config names backend '{name}', which is not installed");
            }
        }
        Ok(backends)
    }

    fn add(&mut self, backend: Backend) -> Result<()> {
        let clash = |what: &str, other: &Backend| {
            Err(Error::invalid(format!(
                "{what} is claimed by '{}' and by '{}'; remove one of them",
                other.path.display(),
                backend.path.display()
            )))
        };
        if let Some(other) = self.by_name.get(&backend.facts.name) {
            return clash(&format!("backend name '{}'", backend.facts.name), other);
        }
        for (platform, _) in &backend.facts.platforms {
            if let Some(other) = self.claimant(platform) {
                return clash(&format!("platform '{platform}'"), other);
            }
        }
        let (name, version) = (&backend.facts.name, &backend.facts.version);
        tracing::info!("found backend '{name}' {version} in {}", backend.path.display());
        self.by_name.insert(backend.facts.name.clone(), Arc::new(backend));
        Ok(())
    }

    fn claimant(&self, platform: &str) -> Option<&Backend> {
        let serves = |b: &&Arc<Backend>| b.facts.platforms.iter().any(|(p, _)| p == platform);
        self.by_name.values().find(serves).map(|b| &**b)
    }

    /// The backend of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Backend>> {
        self.by_name.get(name)
    }
}

impl Platforms for Backends {
    fn backend_of(&self, platform: &str) -> Option<String> {
        self.claimant(platform).map(|b| b.facts.name.clone())
    }

    fn platforms_of(&self, backend: &str) -> Vec<String> {
        self.get(backend).map_or(Vec::new(), |b| {
            b.facts.platforms.iter().map(|(platform, _)| platform.clone()).collect()
        })
    }

    fn default_file(&self, platform_or_backend: &str) -> Option<String> {
        let of_platform = self.claimant(platform_or_backend).and_then(|b| {
            b.facts.platforms.iter().find(|(p, _)| p == platform_or_backend).map(|(_, file)| file)
        });
        let of_backend = || self.get(platform_or_backend)?.facts.platforms.first().map(|(_, f)| f);
        of_platform.or_else(of_backend).filter(|f| !f.is_empty()).cloned()
    }

    fn known_backends(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    fn searched(&self) -> Vec<PathBuf> {
        self.searched.clone()
    }
}
