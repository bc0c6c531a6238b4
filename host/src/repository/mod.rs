//! The live table: model name and version to what serves it. Look-ups take no lock.
//!
//! A version's life, and what a look-up answers meanwhile:
//!
//! ```text
//!   (wanted) ── LOADING ──► READY ──► UNLOADING ──► UNAVAILABLE "unloaded"
//!                  │
//!                  └──────► UNAVAILABLE "why it failed"
//! ```
//! Only READY versions are served; requests that run keep what serves them alive. A READY ensemble whose step's model
//! is no longer served counts as UNAVAILABLE until that is back.

pub mod build; // one version: plugin model, instances, scheduler
mod complete; // auto-completion through the backend
pub mod config; // a model's configuration, from file to effective
mod disk; // directories
pub mod ensemble; // models made of other models
pub mod labels; // class labels
pub mod load; // the repository on disk into this table
pub mod policy; // which versions are wanted
mod schedule; // how requests wait, and the inputs that the host adds
mod warmup; // samples that run before a version is served

use crate::arena::Arena;
use crate::error::{Code, Error, Result};
use crate::plugin::process::Health;
use crate::request::{InferRequest, Signature};
use crate::scheduler::Scheduler;
use crate::stats::VersionStats;
use arc_swap::{ArcSwap, ArcSwapOption};
use ensemble::Needs;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use trtserver_proto::v2::ModelConfig;

/// State of one version; the numbers are those of `ModelReadyState` on the v1 wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    Ready = 1,
    Unavailable = 2,
    Loading = 3,
    Unloading = 4,
}

/// What serves requests of one version. Alive while somebody holds it.
pub struct Served {
    pub name: Arc<str>,
    pub version: i64,
    /// The version as v2 prints it.
    pub version_text: Arc<str>,
    pub config: Arc<ModelConfig>,
    pub signature: Arc<Signature>,
    pub stats: Arc<VersionStats>,
    pub scheduler: Scheduler,
    /// Where its inputs are best received: memory that the process of an isolated model sees.
    pub arena: Option<Arc<Arena>>,
}

impl Served {
    /// Queues a checked request; its reply is answered whatever happens.
    pub fn submit(&self, request: InferRequest) {
        self.scheduler.submit(request);
    }

    /// The same with everything that it needs of other models, which an ensemble does.
    ///
    /// # Errors
    /// Something that it needs is not served.
    fn pinned(self: Arc<Self>) -> Result<Arc<Self>> {
        let Scheduler::Ensemble(ensemble) = &self.scheduler else { return Ok(self) };
        Ok(Arc::new(Self {
            name: Arc::clone(&self.name),
            version: self.version,
            version_text: Arc::clone(&self.version_text),
            config: Arc::clone(&self.config),
            signature: Arc::clone(&self.signature),
            stats: Arc::clone(&self.stats),
            scheduler: Scheduler::Ensemble(ensemble.pinned()?),
            arena: None,
        }))
    }
}

/// One version of a model, served or not.
pub struct Version {
    pub number: i64,
    pub stats: Arc<VersionStats>,
    status: ArcSwap<(VersionState, String)>,
    served: ArcSwapOption<Served>,
    /// What an ensemble needs, from its load on.
    needs: OnceLock<Arc<Needs>>,
    /// Of a model that runs in a process of its own.
    health: ArcSwapOption<Health>,
}

impl Version {
    pub fn new(number: i64, stats: Arc<VersionStats>) -> Arc<Self> {
        let status = ArcSwap::from_pointee((VersionState::Loading, String::new()));
        let (served, needs) = (ArcSwapOption::empty(), OnceLock::new());
        let health = ArcSwapOption::empty();
        Arc::new(Self { number, stats, status, served, needs, health })
    }

    /// State and, when it is not served, why.
    pub fn status(&self) -> Arc<(VersionState, String)> {
        let status = self.status.load_full();
        if status.0 != VersionState::Ready {
            return status;
        }
        match self.broken() {
            Some(why) => Arc::new((VersionState::Unavailable, why)),
            None => status,
        }
    }

    pub fn is_ready(&self) -> bool {
        self.is_loaded() && self.broken().is_none()
    }

    /// Why it does not serve though it is loaded.
    fn broken(&self) -> Option<String> {
        let needs = self.needs.get().and_then(|needs| needs.broken());
        needs.or_else(|| self.health.load().as_deref()?.broken())
    }

    /// Loaded, whatever became of the models that it needs.
    fn is_loaded(&self) -> bool {
        self.status.load().0 == VersionState::Ready
    }

    /// What serves it, if it is loaded.
    pub fn served(&self) -> Option<Arc<Served>> {
        self.served.load_full()
    }

    /// It serves only as long as what it needs is served.
    fn depends_on(&self, needs: Arc<Needs>) {
        let _ = self.needs.set(needs);
    }
}

/// A model: its effective configuration and its versions.
pub struct Model {
    pub name: Arc<str>,
    /// Normalised; `None` when the configuration itself was refused.
    pub config: Option<Arc<ModelConfig>>,
    /// Why the model has no versions, when its configuration was refused.
    pub refusal: Option<String>,
    /// Ascending.
    pub versions: BTreeMap<i64, Arc<Version>>,
    /// The highest READY version: what a request without a version gets.
    latest: ArcSwapOption<Served>,
}

impl Model {
    pub fn new(
        name: &str,
        config: Option<Arc<ModelConfig>>,
        refusal: Option<String>,
        versions: BTreeMap<i64, Arc<Version>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            config,
            refusal,
            versions,
            latest: ArcSwapOption::empty(),
        })
    }

    /// Numbers of the READY versions, ascending.
    pub fn ready_versions(&self) -> Vec<i64> {
        self.versions.values().filter(|v| v.is_ready()).map(|v| v.number).collect()
    }

    /// A version was loaded.
    pub fn ready(&self, version: &Version, served: Arc<Served>) {
        version.served.store(Some(served));
        version.status.store(Arc::new((VersionState::Ready, String::new())));
        self.refresh_latest();
    }

    /// A version failed to load, or stops being served.
    pub fn not_ready(&self, version: &Version, state: VersionState, reason: impl Into<String>) {
        version.status.store(Arc::new((state, reason.into())));
        version.served.store(None);
        self.refresh_latest();
    }

    fn refresh_latest(&self) {
        let latest =
            self.versions.values().rev().filter(|v| v.is_loaded()).find_map(|v| v.served());
        self.latest.store(latest);
    }
}

/// Why a look-up found nothing. `Display` is the text of v1.13 and of v2 (contract/v2 §1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    Model(String),
    NoVersion(String),
    Version(String, i64),
    NotReady(String, i64),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Request for unknown model: ")?;
        match self {
            Missing::Model(m) => write!(f, "'{m}' is not found"),
            Missing::NoVersion(m) => write!(f, "'{m}' has no available versions"),
            Missing::Version(m, v) => write!(f, "'{m}' version {v} is not found"),
            Missing::NotReady(m, v) => write!(f, "'{m}' version {v} is not at ready state"),
        }
    }
}

impl Missing {
    /// NOT_FOUND, or UNAVAILABLE for a version that exists.
    pub fn error(&self) -> Error {
        let code = match self {
            Missing::NotReady(..) => Code::Unavailable,
            _ => Code::NotFound,
        };
        Error::new(code, self.to_string())
    }
}

/// See the module text.
#[derive(Default)]
pub struct Repository {
    models: ArcSwap<HashMap<String, Arc<Model>>>,
}

impl Repository {
    /// A model by name, served or not.
    pub fn model(&self, name: &str) -> Option<Arc<Model>> {
        self.models.load().get(name).cloned()
    }

    /// All models, by name.
    pub fn models(&self) -> BTreeMap<String, Arc<Model>> {
        self.models.load().iter().map(|(k, v)| (k.clone(), Arc::clone(v))).collect()
    }

    /// What serves `version` of `name`; without a version the highest READY one.
    pub fn find(&self, name: &str, version: Option<i64>) -> Result<Arc<Served>, Missing> {
        let models = self.models.load();
        let Some(model) = models.get(name) else { return Err(Missing::Model(name.to_owned())) };
        let Some(number) = version else {
            let latest = model.latest.load_full().and_then(|served| served.pinned().ok());
            return latest.ok_or_else(|| Missing::NoVersion(name.to_owned()));
        };
        let Some(version) = model.versions.get(&number) else {
            return Err(Missing::Version(name.to_owned(), number));
        };
        let served = version.served().and_then(|served| served.pinned().ok());
        served.ok_or_else(|| Missing::NotReady(name.to_owned(), number))
    }

    /// Whether what [`Repository::find`] gives serves at this moment.
    pub fn is_ready(&self, name: &str, version: Option<i64>) -> bool {
        let Ok(served) = self.find(name, version) else { return false };
        let models = self.models.load();
        let version = models.get(name).and_then(|model| model.versions.get(&served.version));
        version.is_none_or(|version| version.is_ready())
    }

    /// Where inputs of the model are best received, if its latest version has a preference.
    pub fn arena(&self, name: &str) -> Option<Arc<Arena>> {
        self.models.load().get(name)?.latest.load().as_ref()?.arena.clone()
    }

    /// True when every version of every model is served: what strict readiness asks.
    pub fn all_ready(&self) -> bool {
        self.models.load().values().all(|m| {
            m.refusal.is_none()
                && !m.versions.is_empty()
                && m.versions.values().all(|v| v.is_ready())
        })
    }

    /// Sequences of all models that have not ended.
    pub fn sequences(&self) -> usize {
        let models = self.models.load();
        let versions = models.values().flat_map(|model| model.versions.values());
        let served = versions.filter_map(|version| version.served());
        served.map(|served| served.scheduler.sequences()).sum()
    }

    /// Takes every version out of service; requests that run keep theirs alive.
    pub fn unload_all(&self) {
        for model in self.models.load().values() {
            // An ensemble may have lost its steps' models a moment ago.
            for version in model.versions.values().filter(|v| v.is_loaded()) {
                tracing::info!("unloading: {}:{}", model.name, version.number);
                model.not_ready(version, VersionState::Unloading, "");
            }
        }
    }

    /// Replaces the whole table.
    pub fn publish(&self, models: HashMap<String, Arc<Model>>) {
        self.models.store(Arc::new(models));
    }
}
