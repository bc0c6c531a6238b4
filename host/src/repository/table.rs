//! The model table: model name and version to open version. Lookups take no lock.
//!
//! A reloaded model gets a new entry. Its versions are opened first; one write then replaces the old entry. The old
//! entry is not changed, so a request that looked it up before the write is still served by it.

use super::{Model, OpenVersion};
use crate::arena::Arena;
use crate::error::{Code, Error, Result};
use crate::ledger::Owner;
use crate::plugin::Backends;
use arc_swap::{ArcSwap, ArcSwapOption};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// See the module text.
#[derive(Default)]
pub struct ModelTable {
    models: ArcSwap<HashMap<String, Arc<Model>>>,
    /// The installed backends, for `/v2/backends`.
    pub(super) backends: ArcSwapOption<Backends>,
}

/// Memory for the inputs of a model.
pub struct InputMemory {
    /// Shared with the process of an isolated model; `None` for a local one.
    pub arena: Option<Arc<Arena>>,
    /// What the inputs are entered under in the ledger.
    pub owner: Owner,
}

/// Why a lookup found nothing. `Display` is the text of v1.13 and of v2 (docs/protocol/v2.md §1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    UnknownModel(String),
    NoReadyVersion(String),
    UnknownVersion(String, i64),
    VersionNotReady(String, i64),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Request for unknown model: ")?;
        match self {
            Self::UnknownModel(m) => write!(f, "'{m}' is not found"),
            Self::NoReadyVersion(m) => write!(f, "'{m}' has no available versions"),
            Self::UnknownVersion(m, v) => write!(f, "'{m}' version {v} is not found"),
            Self::VersionNotReady(m, v) => write!(f, "'{m}' version {v} is not at ready state"),
        }
    }
}

impl LookupError {
    /// NOT_FOUND, or UNAVAILABLE for a version that exists.
    pub fn error(&self) -> Error {
        let code = match self {
            Self::VersionNotReady(..) => Code::Unavailable,
            _ => Code::NotFound,
        };
        Error::new(code, self.to_string())
    }
}

impl ModelTable {
    /// The model called `name`, served or not.
    pub fn get(&self, name: &str) -> Option<Arc<Model>> {
        self.models.load().get(name).cloned()
    }

    /// All models, by name.
    pub fn all(&self) -> BTreeMap<String, Arc<Model>> {
        self.models.load().iter().map(|(k, v)| (k.clone(), Arc::clone(v))).collect()
    }

    /// What serves `version` of `name`; without a version the highest READY one.
    pub fn find(&self, name: &str, version: Option<i64>) -> Result<Arc<OpenVersion>, LookupError> {
        let models = self.models.load();
        let Some(model) = models.get(name) else {
            return Err(LookupError::UnknownModel(name.to_owned()));
        };
        let Some(number) = version else {
            let latest = model.latest.load_full().and_then(|s| s.with_pinned_steps().ok());
            return latest.ok_or_else(|| LookupError::NoReadyVersion(name.to_owned()));
        };
        let Some(version) = model.versions.get(&number) else {
            return Err(LookupError::UnknownVersion(name.to_owned(), number));
        };
        // Of a version that was deselected, sequences may continue.
        let served = version.served().or_else(|| model.ending.find(number));
        let served = served.and_then(|s| s.with_pinned_steps().ok());
        served.ok_or_else(|| LookupError::VersionNotReady(name.to_owned(), number))
    }

    /// Whether the version that [`ModelTable::find`] returns can serve a request now.
    pub fn is_ready(&self, name: &str, version: Option<i64>) -> bool {
        let Ok(served) = self.find(name, version) else { return false };
        let models = self.models.load();
        let version = models.get(name).and_then(|model| model.versions.get(&served.version));
        version.is_none_or(|version| version.is_ready())
    }

    /// The memory that inputs of a version of the model are best received into; without a version, or if it is not served, those of the
    /// latest.
    pub fn input_memory(&self, name: &str, version: Option<i64>) -> Option<InputMemory> {
        let models = self.models.load();
        let model = models.get(name)?;
        let memory = |served: &OpenVersion| InputMemory {
            arena: served.arena.clone(),
            owner: served.signature.owner,
        };
        let version = version.and_then(|number| model.versions.get(&number));
        match version.and_then(|version| version.served()) {
            Some(served) => Some(memory(&served)),
            None => model.latest.load().as_deref().map(memory),
        }
    }

    /// The model's latest version has an input of strings, which takes long to check.
    pub fn takes_strings(&self, name: &str) -> bool {
        let models = self.models.load();
        let latest = models.get(name).and_then(|model| model.latest.load_full());
        latest.is_some_and(|served| served.signature.takes_strings())
    }

    /// Strict readiness: every version of every model is served, or was unloaded by request.
    pub fn all_ready(&self) -> bool {
        self.models.load().values().all(|m| {
            m.refusal.is_none()
                && !m.versions.is_empty()
                && m.versions.values().all(|v| v.is_ready() || v.is_unloaded_by_request())
        })
    }

    /// Number of sequences of all models that have not ended.
    pub fn sequences(&self) -> usize {
        let models = self.models.load();
        let versions = models.values().flat_map(|model| model.versions.values());
        let served = versions.filter_map(|version| version.served());
        let ending = models.values().map(|model| model.ending.sequences());
        served.map(|served| served.scheduler.active_sequences()).chain(ending).sum()
    }

    /// Takes every loaded version out of service. Requests in flight keep the versions that they use.
    pub fn unload_all(&self) {
        for model in self.models.load().values() {
            model.ending.close_all();
            // An ensemble is loaded, though not ready, when a model of its steps was unloaded just before.
            for version in model.versions.values().filter(|v| v.is_loaded()) {
                tracing::info!("unloading: {}:{}", model.name, version.number);
                model.set_unloading(version);
            }
        }
    }

    /// Changes the table in one write. `change` may be called more than once.
    pub(super) fn update(&self, change: impl Fn(&mut HashMap<String, Arc<Model>>)) {
        self.models.rcu(|models| {
            let mut models = HashMap::clone(models);
            change(&mut models);
            models
        });
    }

    /// Replaces the whole table.
    pub fn replace_all(&self, models: HashMap<String, Arc<Model>>) {
        self.models.store(Arc::new(models));
    }
}
