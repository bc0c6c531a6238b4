//! Loading and unloading by request, while other models serve.
//!
//! Whoever changes a model has its turn (`turns`): the changes of one model are made one after another, those of
//! different models side by side. Nobody waits for a turn while he has one. The work itself is done on threads that
//! may block (`change`), so no network thread ever does. A change that has begun is made to its end, also when its
//! caller leaves.

mod change; // one model from one state to another
mod dependents; // ensembles and what they are made of

use super::disk::{self, is_entry};
use super::load::{Loader, Outcome};
use super::turns::Turns;
use super::{Model, Repository};
use crate::error::{Error, Result};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use trtserver_proto::v2::ModelConfig;

/// See the module text.
pub struct Control {
    loader: Loader,
    repository: Arc<Repository>,
    roots: Vec<PathBuf>,
    turns: Arc<Turns>,
    /// As many loads at once as at start.
    loads: Semaphore,
    /// Changes that have begun and not ended.
    running: Arc<AtomicUsize>,
    /// Held when the table is changed. True: the server stops, nothing is added any more.
    closed: Mutex<bool>,
    /// Held while an ensemble is looked at and put into the table, so that no two can be each other's steps.
    ensembles: Mutex<()>,
}

/// Why a model was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No repository has it, or more than one, or its directory cannot be read; with the reason.
    NotPolled(String),
    /// Its directory has no version.
    NoVersion,
    /// Its configuration, or an ensemble's steps: what was serving goes on.
    Refused(Error),
    /// Versions that could not be opened, and why.
    Versions(Vec<(i64, Error)>),
    /// The server itself failed.
    Fault(String),
    /// The server stops.
    Stopping,
}

/// A name of the repositories, or of a model that is known from before.
pub struct Listed {
    pub name: String,
    /// More than one repository has it.
    pub ambiguous: bool,
    /// None if it was never loaded.
    pub model: Option<Arc<Model>>,
}

impl Control {
    /// `roots` are the repositories.
    pub fn new(loader: Loader, repository: &Arc<Repository>, roots: &[PathBuf]) -> Self {
        let loads = Semaphore::new(loader.threads);
        Self {
            loader,
            repository: Arc::clone(repository),
            roots: roots.to_vec(),
            turns: Arc::default(),
            loads,
            running: Arc::default(),
            closed: Mutex::new(false),
            ensembles: Mutex::new(()),
        }
    }

    /// Loads these models and what they need, at start.
    ///
    /// # Errors
    /// A repository itself cannot be read.
    pub fn start(&self, names: &[String]) -> Result<Outcome> {
        // `*` stands for all, as no model can be called that.
        let all = names.iter().any(|name| name == "*");
        self.loader.load_all(&self.repository, &self.roots, (!all).then_some(names))
    }

    /// Loads the model `name`, or loads it anew if it has changed; `config` takes the place of the configuration in its
    /// directory. An ensemble's steps are loaded first. Returns when all that is done.
    ///
    /// # Errors
    /// What was serving before still is.
    pub async fn load(
        self: &Arc<Self>,
        name: &str,
        config: Option<ModelConfig>,
    ) -> Result<(), LoadError> {
        let (me, name) = (Arc::clone(self), name.to_owned());
        self.to_its_end(async move { me.load_with_steps(name, config).await }).await?
    }

    /// Takes the model `name` out of service; with `dependents` also the models that were only loaded because it is
    /// made of them. Requests under way are still answered; the call does not wait for them.
    ///
    /// # Errors
    /// The server stops. A model that is not known is no error.
    pub async fn unload(self: &Arc<Self>, name: &str, dependents: bool) -> Result<(), LoadError> {
        let (me, name) = (Arc::clone(self), name.to_owned());
        self.to_its_end(async move { me.unload_with_steps(name, dependents).await }).await?
    }

    /// All names of the repositories as they are now, and all models known, by name.
    ///
    /// # Errors
    /// A repository cannot be read.
    pub fn index(&self) -> Result<Vec<Listed>> {
        let mut listed: BTreeMap<String, Listed> = disk::scan(&self.roots)?
            .into_iter()
            .map(|(name, dirs)| {
                let ambiguous = dirs.len() > 1;
                (name.clone(), Listed { name, ambiguous, model: None })
            })
            .collect();
        for (name, model) in self.repository.models() {
            let fresh = Listed { name: name.clone(), ambiguous: false, model: None };
            listed.entry(name).or_insert(fresh).model = Some(model);
        }
        Ok(listed.into_values().collect())
    }

    /// From now on nothing is loaded any more.
    pub fn close(&self) {
        *self.table() = true;
    }

    /// Changes that have not ended.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    async fn load_with_steps(
        self: Arc<Self>,
        name: String,
        config: Option<ModelConfig>,
    ) -> Result<(), LoadError> {
        let (me, of, given) = (Arc::clone(&self), name.clone(), config.clone());
        let steps = blocking(move || me.steps_first(&of, given.as_ref())).await??;
        // What went wrong with a step matters to the caller, even if the step still serves as it did.
        let mut first = None;
        let mut loads = JoinSet::new();
        for step in steps.models {
            loads.spawn(Arc::clone(&self).load_one(step, None, false));
        }
        while let Some(loaded) = loads.join_next().await {
            first = first.or(flat(loaded).err());
        }
        for step in steps.ensembles {
            first = first.or(Arc::clone(&self).load_one(step, None, false).await.err());
        }
        let loaded = self.load_one(name, config, true).await;
        // The ensemble's own complaint names the step and its reason.
        loaded.and(first.map_or(Ok(()), Err))
    }

    async fn load_one(
        self: Arc<Self>,
        name: String,
        config: Option<ModelConfig>,
        by_name: bool,
    ) -> Result<(), LoadError> {
        let turn = self.turns.take(&name).await;
        // The semaphore is never closed; if it were, there would be no limit.
        let _load = self.loads.acquire().await;
        let (me, of) = (Arc::clone(&self), name.clone());
        let changed = spawn_blocking(move || me.change(&of, config, by_name)).await;
        if changed.is_err() {
            self.give_up_after_a_fault(&name);
        }
        let changed = flat(changed);
        if let Err(LoadError::Refused(e)) = &changed {
            tracing::error!("failed to load '{name}': {e}");
        }
        drop((turn, _load));
        if changed? {
            self.open_again_what_needs(&name).await?;
        }
        Ok(())
    }

    /// Goes on with the change when the caller leaves; shutdown waits for it.
    async fn to_its_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, LoadError> {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(Arc::clone(&self.running));
        let change = tokio::spawn(async move {
            let _running = running;
            change.await
        });
        change.await.map_err(|e| broken(&e))
    }
}

/// Counts a change while it is made.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs what may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadError> {
    spawn_blocking(work).await.map_err(|e| broken(&e))
}

fn flat<T>(ended: Result<Result<T, LoadError>, tokio::task::JoinError>) -> Result<T, LoadError> {
    ended.unwrap_or_else(|e| Err(broken(&e)))
}

fn broken(e: &tokio::task::JoinError) -> LoadError {
    LoadError::Fault(format!("loading or unloading ended by a fault of the server: {e}"))
}

/// Whether a model can be called that: an entry of a directory that leads nowhere else.
pub fn is_model_name(name: &str) -> bool {
    is_entry(name)
}
