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
//!
//! A model that is loaded anew gets a new entry, whose versions are open before the entry is put in place of the old
//! one, in one write. Nothing in the old entry changes: who looked it up a moment before is still served by it.

pub mod backends; // who uses which backend
pub mod build; // one version: plugin model, instances, scheduler
mod closing; // when the last user of a version is gone
pub(crate) mod complete; // auto-completion through the backend
pub mod config; // a model's configuration, from file to effective
pub mod control; // loading and unloading by request
pub(crate) mod disk; // directories
pub mod ensemble; // models made of other models
mod job; // a model whose versions can be opened
pub mod labels; // class labels
pub mod load; // the repository on disk into this table
mod platforms; // the platforms of installed backends
pub mod policy; // which versions are wanted
mod schedule; // how requests wait, and the inputs that the host adds
mod turns; // one load or unload of a model at a time
mod version; // one version: state, and what serves it
mod warmup; // samples that run before a version is served

use crate::arena::Arena;
use crate::error::{Code, Error, Result};
use crate::instance::priority::Priority;
use crate::plugin::Backends;
use crate::plugin::isolated::words_fit;
use crate::request::{InferRequest, Signature};
use crate::scheduler::Scheduler;
use crate::stats::{FailureReason, VersionStats};
use arc_swap::{ArcSwap, ArcSwapOption};
use backends::BackendUse;
pub use closing::Open;
use disk::Print;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trtserver_proto::v2::ModelConfig;
pub use version::{UNLOADED, Version, VersionState};

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
    /// What it runs on; ensembles have none.
    pub backend: Option<Arc<BackendUse>>,
    /// Told when the last user is gone.
    pub open: Arc<Open>,
    /// Where its inputs are best received: memory that the process of an isolated model sees.
    pub arena: Option<Arc<Arena>>,
}

impl Served {
    /// Queues a checked request; its reply is answered whatever happens.
    pub fn submit(&self, request: InferRequest) {
        // Before it is queued: the sequence that it belongs to stays as it was.
        if self.arena.is_some()
            && let Err(e) = words_fit(&request)
        {
            let _ = request.responder.fail(e, FailureReason::Other);
            return;
        }
        self.scheduler.submit(request);
    }

    /// It answers a request as often as it likes, and not exactly once.
    pub fn decoupled(&self) -> bool {
        self.config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled)
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
            backend: None,
            open: Arc::clone(&self.open),
            arena: None,
        }))
    }
}

/// A model: its effective configuration and its versions.
pub struct Model {
    pub name: Arc<str>,
    /// Normalised; `None` when the configuration itself was refused.
    pub config: Option<Arc<ModelConfig>>,
    /// Why the model has no versions, when its configuration was refused.
    pub refusal: Option<String>,
    /// Ascending. Those that were served before and are no longer wanted are among them.
    pub versions: BTreeMap<i64, Arc<Version>>,
    /// The highest READY version: what a request without a version gets.
    latest: ArcSwapOption<Served>,
    origin: Origin,
}

/// Where a model comes from.
#[derive(Default)]
struct Origin {
    /// Its directory as it was when it was read; none when the configuration came with the request.
    print: Option<Print>,
    /// An ensemble, to be opened again when one of its steps' models is loaded anew.
    ensemble: Option<Arc<ensemble::Prepared>>,
    /// Loaded, and not unloaded since.
    wanted: AtomicBool,
    /// Somebody asked for it by name, not only for an ensemble that needs it.
    asked: AtomicBool,
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
            origin: Origin::default(),
        })
    }

    fn of(
        name: &str,
        config: Arc<ModelConfig>,
        versions: BTreeMap<i64, Arc<Version>>,
        origin: Origin,
    ) -> Arc<Self> {
        let (name, latest) = (name.into(), ArcSwapOption::empty());
        Arc::new(Self { name, config: Some(config), refusal: None, versions, latest, origin })
    }

    /// A model whose configuration was refused, with what is to be seen of its versions of before.
    fn refused(name: &str, old: Option<&Model>, why: String) -> Arc<Self> {
        let versions = old.map(Model::retired).unwrap_or_default();
        Self::new(name, None, Some(why), versions)
    }

    /// The same without the refusal, which nobody cares for after an unload.
    fn without_refusal(&self) -> Arc<Self> {
        Self::new(&self.name, self.config.clone(), None, self.retired())
    }

    fn retired(&self) -> BTreeMap<i64, Arc<Version>> {
        self.versions.iter().map(|(number, version)| (*number, version.retired())).collect()
    }

    fn priority(&self) -> Priority {
        self.config.as_deref().map_or_else(Priority::default, Priority::of)
    }

    /// A version at least is loaded.
    pub fn is_loaded(&self) -> bool {
        self.versions.values().any(|v| v.is_loaded())
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
        if state == VersionState::Unloading {
            let (name, number) = (&self.name, version.number);
            version.gate.farewell(format!("successfully unloaded '{name}' version {number}"));
            version.retire();
        }
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
    /// Whom to ask what is installed.
    backends: ArcSwapOption<Backends>,
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

    /// True when every version of every model is served, or was unloaded by request: what strict readiness asks.
    pub fn all_ready(&self) -> bool {
        self.models.load().values().all(|m| {
            m.refusal.is_none()
                && !m.versions.is_empty()
                && m.versions.values().all(|v| v.is_ready() || v.is_idle())
        })
    }

    /// Sequences of all models that have not ended.
    pub fn sequences(&self) -> usize {
        let models = self.models.load();
        let versions = models.values().flat_map(|model| model.versions.values());
        let served = versions.filter_map(|version| version.served());
        served.map(|served| served.scheduler.active_sequences()).sum()
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

    /// Changes the table in one write; `change` may be called more than once.
    fn update(&self, change: impl Fn(&mut HashMap<String, Arc<Model>>)) {
        self.models.rcu(|models| {
            let mut models = HashMap::clone(models);
            change(&mut models);
            models
        });
    }

    /// Replaces the whole table.
    pub fn publish(&self, models: HashMap<String, Arc<Model>>) {
        self.models.store(Arc::new(models));
    }
}
