//! The model table: model name and version to open version. Lookups take no lock.
//!
//! A reloaded model gets a new entry. Its versions are opened first; one write then replaces the
//! old entry. The old entry is not changed, so a request that looked it up before the write is
//! still served by it.

use super::lifecycle::LoadsInProgress;
use super::{FoundVersion, Model, OpenVersion, VersionInFlight};
use arc_swap::{ArcSwap, ArcSwapOption};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use trtserver_base::arena::Arena;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::LedgerOwner;
use trtserver_model_config::model_id;
use trtserver_model_store::CacheReport;
use trtserver_plugin_host::Backends;
use trtserver_request::buffer::InputPool;
use trtserver_response_cache::ResponseStore;
use trtserver_scheduler::limiter::RateLimiter;

/// Maps model names to their versions; look-ups take no lock.
#[derive(Default)]
pub struct ModelTable {
    models: ArcSwap<TableModels>,
    /// The installed backends, for `/v2/backends`.
    pub(super) backends: ArcSwapOption<Backends>,
    pub loads: Arc<LoadsInProgress>,
    limiter: OnceLock<Arc<RateLimiter>>,
    /// The cache of object stores, for the metrics.
    pub(super) cache: OnceLock<Arc<dyn CacheReport>>,
    /// The response cache, if the server has one.
    responses: OnceLock<Arc<ResponseStore>>,
    /// Why repositories could not be listed at start: which models they have is unknown.
    listing_failure: ArcSwapOption<String>,
}

#[derive(Default)]
struct TableModels {
    by_id: HashMap<String, Arc<Model>>,
    /// Models whose id is not their name, with `--model-namespacing`.
    by_name: HashMap<String, Vec<Arc<Model>>>,
}

impl TableModels {
    fn new(by_id: HashMap<String, Arc<Model>>) -> Self {
        let mut by_name: HashMap<String, Vec<Arc<Model>>> = HashMap::new();
        for model in by_id.values().filter(|model| model.id != model.name) {
            by_name.entry(model.name.to_string()).or_default().push(Arc::clone(model));
        }
        Self { by_id, by_name }
    }

    /// The model of this id or, if only one of them is to be served, of this name.
    fn get(&self, name: &str) -> Result<&Arc<Model>, LookupError> {
        match self.by_id.get(name) {
            Some(model) => Ok(model),
            None => self.named(name),
        }
    }

    #[cold]
    fn named(&self, name: &str) -> Result<&Arc<Model>, LookupError> {
        let unknown = || LookupError::UnknownModel(name.to_owned());
        let all = self.by_name.get(name).ok_or_else(unknown)?;
        let served: Vec<_> = all.iter().filter(|model| model.should_serve()).collect();
        match served.as_slice() {
            [only] => Ok(only),
            // Neither is served, whichever is meant.
            [] => all.first().ok_or_else(unknown),
            several => Err(LookupError::Ambiguous(name.to_owned(), several.len())),
        }
    }
}

/// Memory for the inputs of a model.
pub struct InputMemory {
    /// Shared with the process of an isolated model; `None` for a local one.
    pub arena: Option<Arc<Arena>>,
    /// Pinned memory for large inputs of a model whose instances are on GPUs.
    pub pool: Option<Arc<dyn InputPool>>,
    /// What the inputs are entered under in the ledger.
    pub owner: LedgerOwner,
}

/// Why a lookup found nothing. `Display` is the text of v1.13 and of v2 (docs/protocol/v2.md §1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    UnknownModel(String),
    /// So many repositories have a model of this name.
    Ambiguous(String, usize),
    NoReadyVersion(String),
    UnknownVersion(String, i64),
    VersionNotReady(String, i64),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Ambiguous(m, count) = self {
            return write!(
                f,
                "There are {count} identifiers of model '{m}' in global map, model namespace must be provided to resolve ambiguity."
            );
        }
        f.write_str("Request for unknown model: ")?;
        match self {
            Self::Ambiguous(..) => Ok(()),
            Self::UnknownModel(m) => write!(f, "'{m}' is not found"),
            Self::NoReadyVersion(m) => write!(f, "'{m}' has no available versions"),
            Self::UnknownVersion(m, v) => write!(f, "'{m}' version {v} is not found"),
            Self::VersionNotReady(m, v) => write!(f, "'{m}' version {v} is not at ready state"),
        }
    }
}

impl LookupError {
    /// NOT_FOUND, UNAVAILABLE for a version that exists, INVALID_ARG for an ambiguous name.
    pub fn error(&self) -> Error {
        let code = match self {
            Self::VersionNotReady(..) => Code::Unavailable,
            Self::Ambiguous(..) => Code::InvalidArg,
            _ => Code::NotFound,
        };
        Error::new(code, self.to_string())
    }
}

impl ModelTable {
    /// What limits the executions of all models. Set once, before models are loaded.
    pub fn set_limiter(&self, limiter: &Arc<RateLimiter>) {
        let _ = self.limiter.set(Arc::clone(limiter));
    }

    /// `None` without `--rate-limit=execution_count`.
    pub fn limiter(&self) -> Option<&Arc<RateLimiter>> {
        self.limiter.get()
    }

    /// The model called `name`, or with that id, served or not.
    pub fn get(&self, name: &str) -> Option<Arc<Model>> {
        self.model(name).ok()
    }

    /// As [`ModelTable::get`].
    ///
    /// # Errors
    /// No model has this name, or several repositories have one.
    pub fn model(&self, name: &str) -> Result<Arc<Model>, LookupError> {
        self.models.load().get(name).cloned()
    }

    /// The models called `name`.
    pub(super) fn named(&self, name: &str) -> Vec<Arc<Model>> {
        let models = self.models.load();
        let by_id = models.by_id.get(name).into_iter();
        by_id.chain(models.by_name.get(name).into_iter().flatten()).cloned().collect()
    }

    /// The id of the model that a step of the ensemble `ensemble` names.
    pub(super) fn resolve_step(&self, ensemble: &str, step: &str) -> String {
        let models = self.models.load();
        let served = |model: &&Arc<Model>| model.should_serve();
        let exists = |id: &str| models.by_id.get(id).as_ref().is_some_and(served);
        let named = |name: &str| -> Vec<String> {
            let all = models.by_name.get(name).into_iter().flatten().filter(served);
            all.map(|model| model.id.to_string()).collect()
        };
        model_id::resolve_step_id(ensemble, step, exists, named)
    }

    /// Calls `visit` for each model, in no order. Copies nothing, other than [`ModelTable::all`].
    pub(super) fn visit(&self, visit: impl FnMut(&Arc<Model>)) {
        self.models.load().by_id.values().for_each(visit);
    }

    /// All models, by id.
    pub fn all(&self) -> BTreeMap<String, Arc<Model>> {
        self.models.load().by_id.iter().map(|(k, v)| (k.clone(), Arc::clone(v))).collect()
    }

    /// What serves `version` of `name`; without a version the highest READY one.
    pub fn find(&self, name: &str, version: Option<i64>) -> Result<Arc<OpenVersion>, LookupError> {
        let models = self.models.load();
        let model = models.get(name)?;
        let Some(number) = version else {
            let latest = model.latest.load_full().and_then(|s| s.with_pinned_steps().ok());
            return latest.ok_or_else(|| LookupError::NoReadyVersion(name.to_owned()));
        };
        let Some(version) = model.versions.get(&number) else {
            return Err(LookupError::UnknownVersion(name.to_owned(), number));
        };
        // Sequences of a version that was deselected may continue.
        let served = version.served().or_else(|| model.ending.find(number));
        let served = served.and_then(|s| s.with_pinned_steps().ok());
        served.ok_or_else(|| LookupError::VersionNotReady(name.to_owned(), number))
    }

    /// The same for a request for inference, which may continue a sequence that began on a replaced
    /// version.
    pub fn find_for_inference(
        &self,
        name: &str,
        version: Option<i64>,
    ) -> Result<FoundVersion, LookupError> {
        Ok(FoundVersion::new(self.find(name, version)?, version.is_some()))
    }

    /// Whether the version that [`ModelTable::find`] returns can serve a request now.
    pub fn is_ready(&self, name: &str, version: Option<i64>) -> bool {
        let Ok(served) = self.find(name, version) else { return false };
        let models = self.models.load();
        let model = models.get(name).ok();
        let version = model.and_then(|model| model.versions.get(&served.version));
        version.is_none_or(|version| version.is_ready())
    }

    /// The memory that inputs of a version of the model are best received into; without a version,
    /// or if it is not served, those of the latest.
    pub fn input_memory(&self, name: &str, version: Option<i64>) -> Option<InputMemory> {
        let models = self.models.load();
        let model = models.get(name).ok()?;
        let memory = |served: &OpenVersion| InputMemory {
            arena: served.arena.clone(),
            pool: served.input_pool.clone(),
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
        let latest = models.get(name).ok().and_then(|model| model.latest.load_full());
        latest.is_some_and(|served| served.signature.takes_strings())
    }

    /// The server has a response cache: the models that are loaded from now on may use it.
    pub fn set_response_store(&self, store: Arc<ResponseStore>) {
        let _ = self.responses.set(store);
    }

    pub fn response_store(&self) -> Option<&Arc<ResponseStore>> {
        self.responses.get()
    }

    /// Submitting a request with so many bytes of inputs to the latest version takes long, because
    /// they are hashed.
    pub fn hashes_long(&self, name: &str, bytes: usize) -> bool {
        if self.responses.get().is_none() {
            return false;
        }
        let models = self.models.load();
        let latest = models.get(name).ok().and_then(|model| model.latest.load_full());
        latest.is_some_and(|served| served.hashes_long(|| bytes))
    }

    /// Why repositories could not be listed since the start; `None` if their models are known.
    pub fn listing_failure(&self) -> Option<Arc<String>> {
        self.listing_failure.load_full()
    }

    pub(super) fn set_listing_failure(&self, failure: Option<String>) {
        self.listing_failure.store(failure.map(Arc::new));
    }

    /// Strict readiness: all repositories were listed, and every version of every model is served,
    /// or was unloaded by request. A model whose configuration file is missing or cannot be read
    /// does not count. With `required` models: of these alone, each of which must have a version
    /// that is served.
    pub fn all_ready(&self, required: &[String]) -> bool {
        let models = self.models.load();
        match required {
            [] => {
                self.listing_failure.load().is_none()
                    && models.by_id.values().all(|model| model.is_strictly_ready())
            }
            names => names
                .iter()
                .all(|name| models.get(name).is_ok_and(|model| model.is_ready_as_required())),
        }
    }

    /// Number of sequences of all models that have not ended.
    pub fn sequences(&self) -> usize {
        let models = self.models.load();
        let versions = models.by_id.values().flat_map(|model| model.versions.values());
        let served = versions.filter_map(|version| version.served());
        let ending = models.by_id.values().map(|model| model.ending.sequences());
        served.map(|served| served.scheduler.active_sequences()).chain(ending).sum()
    }

    /// What counts the requests in flight of each served version.
    pub fn in_flight(&self) -> Vec<VersionInFlight> {
        let models = self.models.load();
        let versions = models.by_id.values().flat_map(|model| model.versions.values());
        let served = versions.filter_map(|version| version.served());
        served.map(|served| VersionInFlight::from_version(&served)).collect()
    }

    /// Takes every loaded version out of service. Requests in flight keep the versions that they
    /// use.
    pub fn unload_all(&self) {
        for model in self.models.load().by_id.values() {
            model.ending.close_all();
            // An ensemble is loaded, though not ready, when a model of its steps was unloaded just
            // before.
            for version in model.versions.values().filter(|v| v.is_loaded()) {
                tracing::info!("unloading: {}:{}", model.name, version.number);
                model.set_unloading(version);
            }
        }
    }

    /// Changes the table in one write. `change` may be called more than once.
    pub(super) fn update(&self, change: impl Fn(&mut HashMap<String, Arc<Model>>)) {
        self.models.rcu(|models| {
            let mut by_id = models.by_id.clone();
            change(&mut by_id);
            TableModels::new(by_id)
        });
    }

    /// Replaces the whole table.
    pub fn replace_all(&self, models: HashMap<String, Arc<Model>>) {
        self.models.store(Arc::new(TableModels::new(models)));
    }
}
