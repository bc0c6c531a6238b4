//! One backend: its facts, its settings, and its entries as safe calls.

use super::backend_facts::{BackendFacts, OpenFacts};
use super::crash_report::{self, CrashSubject};
use super::descriptors::{CTexts, ModelFacts, ModelHold};
use super::discovery::candidate::Candidate;
use super::host_api::scope::{Patch, Scope};
use super::isolation::{self, Isolation, IsolationSetting};
use super::library::{self, table};
use super::plugin_file::{Identity, PluginFile};
use super::shared_objects;
use super::text::{c_text, str_view, take_error};
use crate::child_processes::ChildProcesses;
use crate::isolation_limits::IsolationLimits;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::abi::types::{self, BackendHandle};
use trtserver_proto::v2::ModelConfig;

/// How long a child process may take to load a library that appeared while the server runs.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// One installed backend: its facts and settings, and its library once that is loaded.
pub struct PluginBackend {
    pub facts: BackendFacts,
    pub file: PluginFile,
    /// Identity of the file when the facts were read.
    identity: Identity,
    /// The table of the library, loaded into this process when first needed.
    table: OnceLock<Result<&'static BackendTable>>,
    /// From `plugin.toml`, overridden by `--backend-config`.
    pub settings: BTreeMap<String, String>,
    /// Where the backend's models run, unless their configuration sets it.
    pub isolation: IsolationSetting,
    /// Deadlines of isolated models.
    pub limits: IsolationLimits,
    /// `None` in a child process, which starts no others.
    child_processes: Option<Arc<dyn ChildProcesses>>,
    opened: OnceLock<Result<BackendHold>>,
    /// Shared by all `PluginBackend`s of the library.
    lifecycle: Arc<Lifecycle>,
    /// What the open backend says of itself.
    open_facts: OnceLock<OpenFacts>,
    /// Description of the backend for crash reports.
    pub(super) subject: CrashSubject,
    /// Held while an instance opens, unless the backend allows parallel opening.
    pub(super) opening: Mutex<()>,
    /// Open models of all backends.
    pub(super) live_models: Arc<AtomicUsize>,
}

/// See [`PluginBackend::lifecycle`].
#[derive(Default)]
struct Lifecycle {
    /// Held while the backend opens or closes: it is closed before the same library is opened for
    /// the next model.
    one: Mutex<()>,
    /// Why it did not open when it was last tried, by isolation.
    failures: Mutex<[Option<OpenFailure>; 2]>,
    /// What it has said of itself when it was open in a child process.
    facts_in_child: Mutex<Option<OpenFacts>>,
}

/// The number of the scan for which it was tried, if any, and the reason.
type OpenFailure = (Option<u64>, Error);

/// An open backend; closed when its last user drops it.
pub(super) struct BackendHold {
    pub table: &'static BackendTable,
    pub handle: *mut BackendHandle,
    scope: Arc<Scope>,
}

// SAFETY: the interface allows any loader thread to use an open backend.
unsafe impl Send for BackendHold {}
// SAFETY: the interface allows loader threads to use one open backend at the same time.
unsafe impl Sync for BackendHold {}

impl PluginBackend {
    /// Reads the facts of the library; the backend itself opens with its first model. With the
    /// setting `isolation=process` the library is not loaded into this process; with `probe` a
    /// child process loads it first. `sibling` is another backend of the same adapter.
    ///
    /// # Errors
    /// The file or its settings cannot be used.
    pub fn load(
        candidate: Candidate,
        identity: Identity,
        overrides: &BTreeMap<String, String>,
        probe: bool,
        sibling: Option<&Self>,
        child_processes: &Arc<dyn ChildProcesses>,
        live_models: &Arc<AtomicUsize>,
    ) -> Result<Self> {
        let mut settings = candidate.settings;
        // `plugin.toml` gives the default of the backend, which models may change; the operator
        // sets it.
        let is_set = overrides.contains_key(isolation::KEY);
        settings.extend(overrides.clone());
        let library = &candidate.file.library;
        let file = candidate.file.path().display();
        let setting = match settings.remove(isolation::KEY) {
            Some(value) => Some(Isolation::parse(&value).map_err(|e| {
                Error::invalid(format!("backend '{file}': setting '{}' {e}", isolation::KEY))
            })?),
            None => None,
        };
        let limits = IsolationLimits::take(&mut settings)
            .map_err(|e| Error::invalid(format!("backend '{file}': {e}")))?;
        let conflict = match setting {
            Some(Isolation::Process) => None,
            _ => library::conflicts::check_conflicts(library).err(),
        };
        let sibling = sibling.filter(|other| other.isolation.by_default() == Isolation::Process);
        let facts = match (setting, sibling) {
            (Some(Isolation::Process), Some(sibling)) => sibling.facts.for_sibling(&candidate.name),
            (Some(Isolation::Process), None) => {
                child_processes.describe_file(&candidate.file, limits)?
            }
            _ if probe || conflict.is_some() => {
                child_processes.describe_file(&candidate.file, limits.at_most(PROBE_LIMIT))?
            }
            _ => BackendFacts::from_table(library::open_same(library, &identity.library)?)
                .for_file(&candidate.file),
        };
        if candidate.file.identity().ok().as_ref() != Some(&identity) {
            return Err(library::refusal_error(
                candidate.file.path(),
                "it was changed while its facts were read; it is tried again",
            ));
        }
        let demanded = facts.flags & backend_flags::MUST_ISOLATE != 0;
        if demanded && setting == Some(Isolation::None) {
            tracing::warn!(
                "backend '{file}' declares that its models must be isolated, but '{}=none' is set: a crash of the \
                 backend ends the server",
                isolation::KEY
            );
        }
        let by_default = if demanded { Isolation::Process } else { Isolation::None };
        let default_file = candidate.file.adapted.as_ref().and_then(|a| a.default_file.clone());
        let facts = BackendFacts { default_file, ..facts };
        let mut backend = Self::local(facts, candidate.file, identity, settings);
        let otherwise = setting.unwrap_or(by_default);
        backend.isolation = IsolationSetting::new(setting.filter(|_| is_set), otherwise);
        backend.limits = limits;
        backend.child_processes = Some(Arc::clone(child_processes));
        backend.live_models = Arc::clone(live_models);
        if let Some(why) = conflict {
            let e = library::refusal_error(&backend.file.library, why);
            tracing::error!("{e}; until then only isolated models can use it");
            backend.record(Isolation::None, None, Some(&e));
        }
        Ok(backend)
    }

    /// A backend that is not open, whose models run in this process.
    fn local(
        facts: BackendFacts,
        file: PluginFile,
        identity: Identity,
        settings: BTreeMap<String, String>,
    ) -> Self {
        let subject = CrashSubject::new(format!(
            "backend '{}' {} from {}",
            facts.name,
            facts.version,
            file.path().display()
        ));
        Self {
            facts,
            file,
            identity,
            subject,
            table: OnceLock::new(),
            settings,
            isolation: IsolationSetting::new(None, Isolation::None),
            limits: IsolationLimits::default(),
            child_processes: None,
            opened: OnceLock::new(),
            lifecycle: Arc::default(),
            open_facts: OnceLock::new(),
            opening: Mutex::new(()),
            live_models: Arc::default(),
        }
    }

    /// The same backend, not open, for the next model after its last one was closed.
    pub fn unopened(&self) -> Self {
        let (file, settings) = (self.file.clone(), self.settings.clone());
        let identity = self.identity.clone();
        let mut backend = Self::local(self.facts.clone(), file, identity, settings);
        (backend.isolation, backend.limits) = (self.isolation, self.limits);
        backend.child_processes = self.child_processes.clone();
        backend.lifecycle = Arc::clone(&self.lifecycle);
        backend.live_models = Arc::clone(&self.live_models);
        backend
    }

    /// Whether its file was replaced or removed.
    pub fn is_replaced(&self) -> bool {
        self.file.identity().ok().as_ref() != Some(&self.identity)
    }

    /// The framework behind it, as far as known; may be empty.
    pub fn runtime(&self) -> String {
        self.open_facts.get().map_or(&self.facts.runtime, |facts| &facts.runtime).clone()
    }

    /// Its library is a plugin that opens backends of another interface.
    pub fn is_adapted(&self) -> bool {
        self.file.adapted.is_some()
    }

    /// What it says of itself once it is open; before that, what its library says.
    pub fn open_facts(&self) -> OpenFacts {
        self.open_facts.get().cloned().unwrap_or_else(|| OpenFacts {
            runtime: self.facts.runtime.clone(),
            instance_kinds: self.facts.instance_kinds,
            preferred: self.facts.preferred.clone(),
        })
    }

    /// What it says of itself when it is open for a model on this machine. Opens it.
    ///
    /// # Errors
    /// It does not open.
    pub fn facts_when_open(&self, config: &ModelConfig, cancel: &CancelFlag) -> Result<OpenFacts> {
        match isolation::choose_isolation(config, self.isolation)? {
            Isolation::None => self.opened().map(|_| self.open_facts()),
            Isolation::Process => self.facts_in_child(cancel),
        }
    }

    /// Opens it in a child process, unless it has opened in one before.
    fn facts_in_child(&self, cancel: &CancelFlag) -> Result<OpenFacts> {
        let known = self.lifecycle.facts_in_child.lock().clone();
        match known {
            Some(facts) => Ok(facts),
            None => {
                let facts = self.child_processes()?.open_backend(
                    &self.file,
                    &self.settings,
                    self.limits,
                    cancel,
                )?;
                *self.lifecycle.facts_in_child.lock() = Some(facts.clone());
                Ok(facts)
            }
        }
    }

    /// Loads a backend that runs in this process whatever the settings say: the one of a child
    /// process.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn load_locally(file: PluginFile, mut settings: BTreeMap<String, String>) -> Result<Self> {
        settings.remove(isolation::KEY);
        let identity = file.identity().map_err(|e| library::refusal_error(file.path(), e))?;
        let table = library::open_same(&file.library, &identity.library)?;
        let facts = BackendFacts::from_table(table).for_file(&file);
        let backend = Self::local(facts, file, identity, settings);
        let _ = backend.table.set(Ok(table));
        Ok(backend)
    }

    /// What starts child processes.
    ///
    /// # Errors
    /// This process is a child itself.
    pub(crate) fn child_processes(&self) -> Result<&Arc<dyn ChildProcesses>> {
        self.child_processes.as_ref().ok_or_else(|| {
            Error::internal(format!(
                "backend '{}' was opened in a child process, which starts no child processes",
                self.facts.name
            ))
        })
    }

    pub(super) fn table(&self) -> Result<&'static BackendTable> {
        let open = || library::open_same(&self.file.library, &self.identity.library);
        self.table.get_or_init(open).clone()
    }

    pub(super) fn opened(&self) -> Result<&BackendHold> {
        let open = || {
            let opened = self.open();
            self.record(Isolation::None, None, opened.as_ref().err());
            opened
        };
        self.opened.get_or_init(open).as_ref().map_err(Error::clone)
    }

    /// Opens the backend before a model needs it: here, or, isolated, once in a child process that
    /// then ends. `scan` identifies the attempt; `cancel` breaks it off in a child process.
    ///
    /// # Errors
    /// It does not open.
    pub fn open_ahead(&self, isolation: Isolation, scan: u64, cancel: &CancelFlag) -> Result<()> {
        let opened = match isolation {
            Isolation::None => self.opened().map(drop),
            Isolation::Process => self.facts_in_child(cancel).map(drop),
        };
        if isolation == Isolation::Process && cancel.is_cancelled() {
            // Says nothing about the backend.
            return opened;
        }
        self.record(isolation, Some(scan), opened.as_ref().err());
        opened
    }

    fn record(&self, isolation: Isolation, scan: Option<u64>, error: Option<&Error>) {
        let failure = error.map(|e| (scan, e.clone()));
        self.lifecycle.failures.lock()[isolation as usize] = failure;
    }

    /// Why it did not open when it was last tried, and for which scan.
    pub fn open_failure(&self, isolation: Isolation) -> Option<(Option<u64>, Error)> {
        self.lifecycle.failures.lock()[isolation as usize].clone()
    }

    fn open(&self) -> Result<BackendHold> {
        let scope = Scope::for_backend(&self.facts.name);
        let name = c_text(&self.facts.name);
        let path = self.file.path();
        let dir = c_text(&path.parent().unwrap_or(path).to_string_lossy());
        let mut settings = self.settings.clone();
        if self.is_adapted() {
            settings.insert(shared_objects::SETTING.to_owned(), shared_objects::own_prefix());
        }
        let settings = CTexts::new(&settings);
        let (table, mut handle) = (self.table()?, null_mut());
        let _one = self.lifecycle.one.lock();
        // SAFETY: all strings live through the call; the scope lives as long as the open backend.
        let error = unsafe {
            let params = settings.params();
            let n = params.len() as u32;
            let (name, dir) = (str_view(&name), str_view(&dir));
            let _entered = self.subject.enter(&crash_report::BACKEND_OPEN);
            (table.backend_open)(scope.handle(), name, dir, params.as_ptr(), n, &mut handle)
        };
        self.check(error, "backend_open", "")?;
        let info = {
            let _entered = self.subject.enter(&crash_report::BACKEND_INFO);
            // SAFETY: the backend is open; the backend info it returns lives until it is closed.
            unsafe { (table.backend_info)(handle) }
        };
        // SAFETY: null or an info, by the interface.
        if unsafe { table::check_info(info) }.is_ok() {
            // SAFETY: just checked.
            let _ = self.open_facts.set(unsafe { OpenFacts::from_info(info) });
        }
        let file = path.display();
        tracing::info!("opened backend '{}' {} from {file}", self.facts.name, self.facts.version);
        Ok(BackendHold { table, handle, scope })
    }

    /// Takes an error that an entry returned; an empty text is replaced by one that names the
    /// entry.
    pub(super) fn check(&self, error: *mut types::Error, entry: &str, subject: &str) -> Result<()> {
        // SAFETY: entries return null or an error made by the host.
        unsafe { take_error(error) }.map_err(|e| {
            let e = e.to_error();
            if e.message.is_empty() {
                let text = format!(
                    "{subject}: backend '{}' failed in {entry} without a reason",
                    self.facts.name
                );
                return Error::new(e.code, text.trim_start_matches(": "));
            }
            e
        })
    }

    /// Asks the backend to complete a configuration. `cancel` breaks it off in a child process.
    ///
    /// # Errors
    /// The backend returns an error.
    pub fn complete(
        self: &Arc<Self>,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<CompletedConfig> {
        if isolation::choose_isolation(facts.config, self.isolation)? == Isolation::Process {
            let mut completed = CompletedConfig::none(self);
            completed.patch = self.child_processes()?.complete_config(
                &self.file,
                &self.settings,
                self.limits,
                facts,
                cancel,
            )?;
            return Ok(completed);
        }
        self.complete_locally(facts)
    }

    /// As [`PluginBackend::complete`], always in this process.
    ///
    /// # Errors
    /// The backend returns an error.
    pub fn complete_locally(self: &Arc<Self>, facts: &ModelFacts<'_>) -> Result<CompletedConfig> {
        let mut completed = CompletedConfig::none(self);
        let Some(extension) = table::autocomplete_extension(self.table()?) else {
            return Ok(completed);
        };
        let opened = self.opened()?;
        let hold = ModelHold::new(facts, &self.settings, true);
        let entered = self.subject.enter(&crash_report::AUTOCOMPLETE);
        let mut state = null_mut();
        // SAFETY: the descriptor lives through the call.
        let error = unsafe { (extension.autocomplete)(opened.handle, hold.desc(), &raw mut state) };
        drop(entered);
        self.check(error, "autocomplete", facts.name)?;
        (completed.state, completed.free) = (state, extension.state_free);
        completed.patch = hold.scope.patch.lock().take();
        Ok(completed)
    }
}

/// What a completion of a configuration returned. The state is freed when this is dropped.
pub struct CompletedConfig {
    pub patch: Option<Patch>,
    /// The configuration had no batch size, and has the default now.
    pub adds_batch_size: bool,
    state: *mut u8,
    free: Option<unsafe extern "C" fn(*mut u8)>,
    /// Open until the state is freed.
    backend: Arc<PluginBackend>,
}

// SAFETY: the interface lets any loader thread open the model and free the state, one after the
// other.
unsafe impl Send for CompletedConfig {}

impl CompletedConfig {
    fn none(backend: &Arc<PluginBackend>) -> Self {
        let backend = Arc::clone(backend);
        Self { patch: None, adds_batch_size: false, state: null_mut(), free: None, backend }
    }

    /// For [`ModelFacts::state`].
    pub fn state(&self) -> *mut u8 {
        self.state
    }
}

impl Drop for CompletedConfig {
    fn drop(&mut self) {
        if let Some(free) = self.free.filter(|_| !self.state.is_null()) {
            let _entered = self.backend.subject.enter(&crash_report::AUTOCOMPLETE);
            // SAFETY: a state of this backend, which is open; freed once.
            unsafe { free(self.state) };
        }
    }
}

impl Drop for PluginBackend {
    fn drop(&mut self) {
        if let Some(Ok(opened)) = self.opened.get() {
            opened.scope.nested.close();
            let _one = self.lifecycle.one.lock();
            let _entered = self.subject.enter(&crash_report::BACKEND_CLOSE);
            // SAFETY: models hold their backend, so none is open; this is the only close.
            unsafe { (opened.table.backend_close)(opened.handle) };
            tracing::info!("closed backend '{}' {}", self.facts.name, self.facts.version);
        }
    }
}
