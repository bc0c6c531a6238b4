//! One model from one state to another. All of it may block, and is done by whoever has the model's turn.

use super::super::disk::{self, Print, listing};
use super::super::ensemble;
use super::super::job::Job;
use super::super::load::Ask;
use super::super::policy::versions_of_entries;
use super::super::{Model, Served, UNLOADED, Version, VersionState};
use super::{Control, LoadError};
use crate::error::{Error, Result};
use crate::instance::priority::Priority;
use crate::sync::MutexGuard;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trtserver_proto::v2::ModelConfig;

/// How long an unload waits for instances without requests to close, so that its caller finds the model unloaded.
const SETTLE: Duration = Duration::from_secs(1);
/// The same where somebody has a request: whose answer is on its way lets go at once, for others nobody waits.
const GLANCE: Duration = Duration::from_millis(20);

impl Control {
    /// Loads `name`, whatever it is made of. True when something was loaded, false when nothing had changed.
    pub(super) fn change(
        &self,
        name: &str,
        config: Option<ModelConfig>,
        by_name: bool,
    ) -> Result<bool, LoadError> {
        if *self.table() {
            return Err(LoadError::Stopping);
        }
        let dirs = disk::dirs(&self.roots, name);
        let poll = one(&dirs).and_then(|dir| Ok((dir, Print::of(dir), listing(dir)?)));
        let (print, entries) = match poll {
            Ok((_, Ok(print), entries)) => (print, entries),
            Ok((dir, Err(e), _)) => return not_polled(name, format!("'{}': {e}", dir.display())),
            Err(e) => return not_polled(name, e.message),
        };
        let old = self.repository.model(name);
        self.loader.backends.refresh();
        if let Some(old) = &old
            && config.is_none()
            && old.origin.print.as_ref() == Some(&print)
            && old.versions.values().all(|v| v.is_loaded() || v.is_unloaded())
            && old.is_loaded()
            && !self.backend_is_newer(old)
        {
            old.origin.asked.fetch_or(by_name, Ordering::Relaxed);
            return Ok(false);
        }
        let found = versions_of_entries(entries.iter().map(|(n, is_dir)| (n.as_str(), *is_dir)));
        if found.versions.is_empty() {
            tracing::error!("failed to load '{name}', no version is available");
            return Err(LoadError::NoVersion);
        }
        // With another configuration than that of the directory, the next plain load must not find all unchanged.
        let print = config.is_none().then_some(print);
        let by_name = by_name
            || old
                .as_ref()
                .is_some_and(|o| o.is_loaded() && o.origin.asked.load(Ordering::Relaxed));
        let ask = Ask { config, old: old.clone(), print, by_name };
        match self.loader.model(name, &dirs, &self.repository, ask) {
            Ok(job) => self.exchange(job, old.as_deref()).map(|()| true),
            Err(e) => {
                self.refuse(name, old.as_deref(), &e);
                Err(LoadError::Refused(e))
            }
        }
    }

    /// A version of `model` runs on another version of its backend than it would if it were loaded now.
    fn backend_is_newer(&self, model: &Model) -> bool {
        let Some(config) = &model.config else { return false };
        let mut used =
            model.versions.values().filter_map(|version| version.served()?.backend.clone());
        used.any(|used| self.loader.backends.for_model(config).is_ok_and(|now| !used.is(&now)))
    }

    /// Puts what `job` opens in the place of `old`.
    fn exchange(&self, mut job: Job, old: Option<&Model>) -> Result<(), LoadError> {
        let max = |model: &Arc<Model>| model.is_loaded() && model.priority() == Priority::Max;
        let models = self.repository.models();
        job.tell(job.model.priority() == Priority::Max || models.values().any(max));
        let is_ensemble = job.uses().is_some();
        let _alone = is_ensemble.then(|| lock(&self.ensembles));
        if let Some(e) = self.circle(&job) {
            self.refuse(&job.model.name, old, &e);
            return Err(LoadError::Refused(e));
        }
        if old.is_some_and(Model::is_loaded) {
            return self.replace(&job);
        }
        // Nothing serves: everybody may see how it comes, and each version serves as soon as it can.
        self.put(&job.model)?;
        let mut failed = Vec::new();
        for version in &job.versions {
            // A server that stops unloads what it sees; what is not open yet stays closed.
            if *self.table() {
                self.give_up(&job.model, "Server exiting");
                return Err(LoadError::Stopping);
            }
            match job.open("loading", version) {
                Ok(served) => job.model.ready(&version.0, served),
                Err(e) => {
                    let why = e.message.clone();
                    job.model.not_ready(&version.0, VersionState::Unavailable, why);
                    failed.push((version.0.number, e));
                }
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(LoadError::Versions(failed)) }
    }

    /// Opens all versions beside those that serve, and exchanges them in one write; or none.
    fn replace(&self, job: &Job) -> Result<(), LoadError> {
        let mut opened: Vec<(&Arc<Version>, Arc<Served>)> = Vec::new();
        let mut failed = Vec::new();
        for version in &job.versions {
            if *self.table() {
                return Err(LoadError::Stopping);
            }
            match job.open("re-loading", version) {
                Ok(served) => opened.push((&version.0, served)),
                Err(e) => failed.push((version.0.number, e)),
            }
        }
        if !failed.is_empty() {
            let name = &job.model.name;
            tracing::error!("re-loading '{name}' failed, what was loaded before goes on serving");
            return Err(LoadError::Versions(failed));
        }
        opened.into_iter().for_each(|(version, served)| job.model.ready(version, served));
        let old = self.repository.model(&job.model.name);
        self.put(&job.model)?;
        old.iter().flat_map(|old| old.versions.values()).for_each(|version| version.retire());
        Ok(())
    }

    /// Takes every version of `name` out of service.
    pub(super) fn withdraw(&self, name: &str) -> Result<(), LoadError> {
        if *self.table() {
            return Err(LoadError::Stopping);
        }
        let Some(mut model) = self.repository.model(name) else { return Ok(()) };
        if model.refusal.is_some() && model.versions.is_empty() {
            // It was never loaded, and is again as if nobody had ever tried.
            let _table = self.table();
            self.repository.update(|models| drop(models.remove(name)));
            return Ok(());
        }
        if model.refusal.is_some() {
            model = model.without_refusal();
            self.put(&model)?;
        }
        model.origin.wanted.store(false, Ordering::Relaxed);
        model.origin.asked.store(false, Ordering::Relaxed);
        let mut waits = Vec::new();
        for version in model.versions.values() {
            if let Some(served) = version.served().filter(|_| version.is_loaded()) {
                tracing::info!("unloading: {name}:{}", version.number);
                let users = Arc::downgrade(&served);
                let empty = served.scheduler.waiting() == 0;
                drop(served);
                model.not_ready(version, VersionState::Unloading, "");
                let idle = empty && users.strong_count() == 0;
                waits.push((version, if idle { SETTLE } else { GLANCE }));
            } else if !version.is_unloaded() {
                model.not_ready(version, VersionState::Unavailable, UNLOADED);
            }
        }
        for (version, limit) in waits {
            version.gate.wait(limit);
        }
        self.forget();
        Ok(())
    }

    /// Drops from the table what is neither loaded nor in any repository.
    fn forget(&self) {
        let _table = self.table();
        let gone = |(name, model): (&String, &Arc<Model>)| {
            let open = |v: &Arc<Version>| v.status().0 != VersionState::Unavailable;
            let gone = !model.origin.wanted.load(Ordering::Relaxed)
                && !model.versions.values().any(open)
                && disk::dirs(&self.roots, name).is_empty();
            gone.then(|| name.clone())
        };
        let gone: Vec<String> = self.repository.models().iter().filter_map(gone).collect();
        if !gone.is_empty() {
            self.repository.update(|models| models.retain(|name, _| !gone.contains(name)));
        }
    }

    /// The configuration was refused: what serves goes on, else everybody may see why nothing does.
    fn refuse(&self, name: &str, old: Option<&Model>, e: &Error) {
        if old.is_none_or(|old| !old.is_loaded()) {
            // A server that stops need not show it.
            let _ = self.put(&Model::refused(name, old, e.message.clone()));
        }
    }

    /// What a load left in the middle.
    fn give_up(&self, model: &Model, why: &str) {
        let loading = model.versions.values().filter(|v| v.status().0 == VersionState::Loading);
        loading.for_each(|v| model.not_ready(v, VersionState::Unavailable, why));
    }

    /// The same after a fault of the server itself.
    pub(super) fn give_up_after_a_fault(&self, name: &str) {
        if let Some(model) = self.repository.model(name) {
            self.give_up(&model, "loading ended by a fault of the server; see its log");
        }
    }

    fn put(&self, model: &Arc<Model>) -> Result<(), LoadError> {
        let closed = self.table();
        if *closed {
            return Err(LoadError::Stopping);
        }
        self.repository.update(|models| drop(models.insert(model.name.to_string(), model.clone())));
        Ok(())
    }

    /// Why the ensemble cannot be put beside those that are loaded, if it cannot.
    fn circle(&self, job: &Job) -> Option<Error> {
        let own = job.uses()?;
        let mut uses: ensemble::Uses = self
            .repository
            .models()
            .iter()
            .filter(|(_, model)| model.is_loaded())
            .filter_map(|(name, model)| {
                Some((name.clone(), model.origin.ensemble.as_ref()?.uses()))
            })
            .collect();
        uses.insert(job.model.name.to_string(), own);
        let mut order = ensemble::order(&uses, |_| true);
        order.refused.remove(&*job.model.name).map(Error::invalid)
    }

    pub(super) fn table(&self) -> MutexGuard<'_, bool> {
        lock(&self.closed)
    }
}

pub(super) fn lock<T>(mutex: &crate::sync::Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// The one directory of a model.
fn one(dirs: &[PathBuf]) -> Result<&Path> {
    match dirs {
        [dir] => Ok(dir),
        [] => Err(Error::not_found("no repository has a directory of that name")),
        _ => Err(Error::invalid("not unique across all model repositories")),
    }
}

fn not_polled<T>(name: &str, why: String) -> Result<T, LoadError> {
    tracing::error!("failed to load '{name}', failed to poll from model repository: {why}");
    Err(LoadError::NotPolled(why))
}
