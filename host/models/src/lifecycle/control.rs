//! Model control: load, unload and index by request, while other models serve.
//!
//! Changes of one model run one after another under its model lock, changes of different models in
//! parallel. A task that holds a model lock does not wait for another. The work is done on blocking
//! threads (`load`, `unload`), never on network threads. A change that has begun runs to completion
//! even if its client disconnects.
//!
//! Lock order: model lock, `ensembles`, `stopping`; `loading` is held alone. None of them is on the
//! path of an inference request.

use super::super::poll::WakeEvent;
use super::super::{Model, ModelTable};
use super::model_locks::ModelLocks;
use super::overrides::LoadOverrides;
use super::prepare::ModelLoader;
use super::startup::StartupReport;
use crate::instance::load_cancel::LoadCancel;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use trtserver_base::disk::is_entry;
use trtserver_base::error::{Code, Error, Result};
use trtserver_model_config::model_id;
use trtserver_model_store::{ModelListing, ModelRepositories};
use trtserver_plugin_host::load_priority::LowPriority;

/// Loads, unloads and lists models by request, while other models serve.
pub struct ModelControl {
    pub(super) loader: ModelLoader,
    pub(super) models: Arc<ModelTable>,
    pub(super) repositories: ModelRepositories,
    pub(super) locks: Arc<ModelLocks>,
    pub(super) runtime: Handle,
    /// The polling thread, which ends at shutdown.
    poller: OnceLock<Arc<WakeEvent>>,
    /// Limits parallel loads to `--model-load-thread-count`.
    loads: Semaphore,
    /// Changes that have begun and not ended.
    in_progress: Arc<AtomicUsize>,
    /// Held while the table is changed. True: the server stops and nothing is published any more.
    pub(super) stopping: Mutex<bool>,
    /// Loads in progress by model, to break them off.
    loading: Mutex<HashMap<String, Arc<LoadCancel>>>,
    /// Held while an ensemble is checked and published, so that two ensembles cannot become each
    /// other's steps.
    pub(super) ensembles: Mutex<()>,
}

/// Why a model was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No repository or more than one has the model, or its directory cannot be read; with the
    /// reason.
    NotPolled(Error),
    /// The directory of the model has no version.
    NoVersion,
    /// The configuration file of a model that is not loaded is missing or cannot be read.
    Unreadable(Error),
    /// The configuration, or the steps of an ensemble, are invalid.
    Refused(Error),
    /// Versions that could not be opened, and why.
    Versions(Vec<(i64, Error)>),
    /// The server panicked.
    Internal(String),
    /// The server is shutting down.
    Stopping,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internal(reason) => f.write_str(reason),
            Self::NoVersion => f.write_str("no version is available"),
            Self::NotPolled(e) | Self::Unreadable(e) | Self::Refused(e) => f.write_str(&e.message),
            Self::Versions(failed) => {
                for (i, (number, e)) in failed.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "; " };
                    write!(f, "{separator}version {number}: {}", e.message)?;
                }
                Ok(())
            }
            Self::Stopping => f.write_str("the server is shutting down"),
        }
    }
}

impl LoadError {
    /// A repository could not be read: the same load may succeed later.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::NotPolled(e) | Self::Refused(e) if e.code == Code::Unavailable)
    }
}

/// One model of the index: it is in a repository, or was loaded before.
pub struct IndexEntry {
    pub id: String,
    /// More than one repository has the model.
    pub ambiguous: bool,
    /// `None` if it was never loaded.
    pub model: Option<Arc<Model>>,
}

impl IndexEntry {
    pub fn name(&self) -> &str {
        model_id::split_model_id(&self.id).1
    }
}

impl ModelControl {
    /// To be called in the runtime that changes run on.
    pub fn new(
        loader: ModelLoader,
        models: &Arc<ModelTable>,
        repositories: ModelRepositories,
    ) -> Self {
        let loads = Semaphore::new(loader.threads);
        Self {
            loader,
            models: Arc::clone(models),
            repositories,
            locks: Arc::default(),
            runtime: Handle::current(),
            poller: OnceLock::new(),
            loads,
            in_progress: Arc::default(),
            stopping: Mutex::new(false),
            loading: Mutex::default(),
            ensembles: Mutex::new(()),
        }
    }

    /// The table that it loads into.
    pub fn models(&self) -> &ModelTable {
        &self.models
    }

    /// Loads the named models and the models of their steps, at start; `*` loads all.
    pub fn load_at_start(&self, names: &[String]) -> StartupReport {
        let all = names.iter().any(|name| name == "*");
        self.loader.load_all(&self.models, &self.repositories, (!all).then_some(names))
    }

    /// Loads the model `name`, or reloads it if it has changed; `overrides` replace what is in its
    /// directory. The models of an ensemble's steps are loaded first. Returns when the load is
    /// complete.
    ///
    /// # Errors
    /// The load failed. Versions that served before still do.
    /// With namespaces, all models of that name.
    pub async fn load(
        self: &Arc<Self>,
        name: &str,
        overrides: LoadOverrides,
    ) -> Result<(), LoadError> {
        let (this, name) = (Arc::clone(self), name.to_owned());
        self.run_to_completion(async move {
            let mut ids = vec![name.clone()];
            if overrides.files.is_empty() {
                let control = Arc::clone(&this);
                let named = run_blocking(move || control.repositories.named(&name)).await?;
                let named = named.map_err(LoadError::NotPolled)?;
                ids = if named.is_empty() { ids } else { named };
            }
            let mut failed = Ok(());
            for id in ids {
                let loaded = Arc::clone(&this).load_with_steps(id, overrides.clone()).await;
                failed = failed.and(loaded);
            }
            failed
        })
        .await?
    }

    /// Loads a model whose files were found to have changed, without the models of its steps.
    ///
    /// # Errors
    /// The load failed. Versions that served before still do.
    pub async fn load_changed(self: &Arc<Self>, name: &str) -> Result<(), LoadError> {
        let (this, name) = (Arc::clone(self), name.to_owned());
        self.run_to_completion(
            async move { this.load_one(name, LoadOverrides::default(), true).await },
        )
        .await?
    }

    /// Takes a model out of service whose directory was removed. A load of it in progress is broken
    /// off.
    ///
    /// # Errors
    /// The server is shutting down.
    pub async fn remove(self: &Arc<Self>, name: &str) -> Result<(), LoadError> {
        if let Some(load) = self.loading.lock().get(name) {
            break_off(name, load);
        }
        let (this, name) = (Arc::clone(self), name.to_owned());
        self.run_to_completion(async move {
            let lock = this.locks.lock(&name).await;
            let model = Arc::clone(&this);
            let removed = run_blocking(move || model.remove_model(&name)).await?;
            drop(lock);
            removed
        })
        .await?
    }

    /// Takes the model `name` out of service; with `dependents` also the models of its steps that
    /// were loaded for it alone. Requests in flight still get their responses; the call does not
    /// wait for them. A load of `name` in progress is broken off.
    ///
    /// # Errors
    /// The server is shutting down. An unknown model is not an error.
    pub async fn unload(self: &Arc<Self>, name: &str, dependents: bool) -> Result<(), LoadError> {
        // With namespaces, all models of that name.
        for (id, load) in &*self.loading.lock() {
            if model_id::split_model_id(id).1 == name {
                break_off(name, load);
            }
        }
        let (this, name) = (Arc::clone(self), name.to_owned());
        self.run_to_completion(async move {
            let named = this.models.named(&name);
            let ids = named.iter().map(|model| model.id.to_string());
            let ids: Vec<String> = if named.is_empty() { vec![name] } else { ids.collect() };
            for id in ids {
                Arc::clone(&this).unload_with_steps(id, dependents).await?;
            }
            Ok(())
        })
        .await?
    }

    /// All models in the repositories as they are now, and all models in the table, by name. Of a
    /// repository that cannot be listed, those in the table.
    ///
    /// # Errors
    /// A repository cannot be listed, and no model is known.
    pub fn index(&self) -> Result<Vec<IndexEntry>> {
        let ModelListing { models, failures } = self.repositories.list();
        for e in &failures {
            tracing::warn!("repository index: {e}");
        }
        let mut entries: BTreeMap<String, IndexEntry> = models
            .into_iter()
            .map(|(name, sources)| {
                let ambiguous = sources.len() > 1;
                (name.clone(), IndexEntry { id: name, ambiguous, model: None })
            })
            .collect();
        for (name, model) in self.models.all() {
            let deleted = IndexEntry { id: name.clone(), ambiguous: false, model: None };
            entries.entry(name).or_insert(deleted).model = Some(model);
        }
        match failures.into_iter().next() {
            Some(e) if entries.is_empty() => Err(e),
            _ => Ok(entries.into_values().collect()),
        }
    }

    /// From now on nothing is loaded any more. Loads in progress are broken off.
    pub fn stop(&self) {
        *self.stopping.lock() = true;
        self.loading.lock().iter().for_each(|(name, load)| break_off(name, load));
        if let Some(poller) = self.poller.get() {
            poller.wake();
        }
    }

    /// Wakes the polling thread when nothing is loaded any more.
    pub fn wake_at_stop(&self, poller: &Arc<WakeEvent>) {
        let _ = self.poller.set(Arc::clone(poller));
    }

    /// The load of `name` can be broken off through `cancel` until the result is dropped. One at a
    /// time for each model.
    pub(super) fn loading(&self, name: &str, cancel: &Arc<LoadCancel>) -> CancellableLoad<'_> {
        self.loading.lock().insert(name.to_owned(), Arc::clone(cancel));
        if self.is_stopping() {
            cancel.cancel();
        }
        CancellableLoad { control: self, name: name.to_owned() }
    }

    pub fn is_stopping(&self) -> bool {
        *self.stopping.lock()
    }

    /// Number of changes that have begun and not ended.
    pub fn changes_in_progress(&self) -> usize {
        self.in_progress.load(Ordering::Acquire)
    }

    async fn load_with_steps(
        self: Arc<Self>,
        name: String,
        overrides: LoadOverrides,
    ) -> Result<(), LoadError> {
        let given = overrides.config.clone();
        let (this, model) = (Arc::clone(&self), name.clone());
        let steps = run_blocking(move || this.models_of_steps(&model, given.as_ref())).await??;
        // The failure of a step is reported even if an older load of the step still serves.
        let mut first = None;
        let mut loads = JoinSet::new();
        for step in steps.models {
            loads.spawn(Arc::clone(&self).load_one(step, LoadOverrides::default(), false));
        }
        while let Some(loaded) = loads.join_next().await {
            first = first.or(flatten_join(loaded).err());
        }
        for step in steps.ensembles {
            let loaded = Arc::clone(&self).load_one(step, LoadOverrides::default(), false).await;
            first = first.or(loaded.err());
        }
        let loaded = self.load_one(name, overrides, true).await;
        // An error of the ensemble itself names the step and its reason, so it takes precedence.
        loaded.and(first.map_or(Ok(()), Err))
    }

    async fn load_one(
        self: Arc<Self>,
        name: String,
        overrides: LoadOverrides,
        by_name: bool,
    ) -> Result<(), LoadError> {
        let lock = self.locks.lock(&name).await;
        // `acquire` fails only on a closed semaphore, and this one is never closed.
        let permit = self.loads.acquire().await;
        let (this, model) = (Arc::clone(&self), name.clone());
        let loaded = spawn_blocking(move || {
            // Other models serve meanwhile.
            let _low = LowPriority::begin();
            let changed = this.load_model(&model, overrides, by_name)?;
            Ok(if changed { this.list_dependent_ensembles(&model) } else { Vec::new() })
        })
        .await;
        if loaded.is_err() {
            self.abandon_after_panic(&name);
        }
        let loaded = flatten_join(loaded);
        if let Err(LoadError::Unreadable(e) | LoadError::Refused(e)) = &loaded {
            tracing::error!("failed to load '{name}': {e}");
        }
        drop((lock, permit));
        self.reopen_ensembles(loaded?).await
    }

    /// Runs `change` in a task of its own, so that it ends even if the caller is cancelled.
    /// Shutdown waits for it.
    async fn run_to_completion<T: Send + 'static>(
        &self,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, LoadError> {
        let in_progress = InProgress::new(&self.in_progress);
        let change = tokio::spawn(async move {
            let _in_progress = in_progress;
            change.await
        });
        change.await.map_err(|e| panic_error(&e))
    }
}

/// Breaks off the load of the model `name`, as far as possible.
fn break_off(name: &str, load: &LoadCancel) {
    load.cancel();
    if let Some(backend) = load.backend_in_process() {
        tracing::warn!(
            "the load of model '{name}' cannot be broken off while backend '{backend}' opens it in the server's process: \
             it ends when the backend returns or reports its progress, at shutdown after --exit-timeout-secs; the load of an isolated model \
             can be broken off at any time"
        );
    }
}

/// A load that can be broken off.
pub(super) struct CancellableLoad<'a> {
    control: &'a ModelControl,
    name: String,
}

impl Drop for CancellableLoad<'_> {
    fn drop(&mut self) {
        self.control.loading.lock().remove(&self.name);
    }
}

/// Counts a change from its begin to its end.
struct InProgress(Arc<AtomicUsize>);

impl InProgress {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs `work` on a blocking thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadError> {
    spawn_blocking(work).await.map_err(|e| panic_error(&e))
}

fn flatten_join<T>(joined: Result<Result<T, LoadError>, JoinError>) -> Result<T, LoadError> {
    joined.unwrap_or_else(|e| Err(panic_error(&e)))
}

fn panic_error(e: &JoinError) -> LoadError {
    LoadError::Internal(format!("the server panicked while loading or unloading: {e}"))
}

/// Checks that a model can have that name, which must be a plain directory name.
///
/// # Errors
/// It cannot; the text is Triton's.
pub fn check_model_name(name: &str) -> Result<(), Error> {
    if is_entry(name) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "invalid model name '{name}', model name must not contain path traversal characters"
    )))
}
