//! Loads one model: prepare, open, publish, retire. Runs on a blocking thread, under the model's
//! lock.

use super::super::ending_versions::EndingVersions;
use super::super::ensemble::{self, EnsembleSteps};
use super::super::open_instances::InstanceResize;
use super::super::{ChangeKind, Model, ModelVersion, OpenVersion, VersionState};
use super::client_loads::LoadOrigin;
use super::prepare::LoadRequest;
use super::prepared::PreparedModel;
use super::refusal::RefusedModel;
use super::startup::{not_polled, refusal_reason};
use super::{LoadError, LoadOverrides, ModelControl};
use crate::instance::load_cancel::LoadCancel;
use crate::instance::priority::InstancePriority;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use trtserver_base::error::{Error, Result};
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_model_store::ModelSource;
use trtserver_plugin_host::backend::PluginBackend;

/// Interval at which replaced versions are closed whose sequences have ended.
const CLOSE_INTERVAL: Duration = Duration::from_millis(20);

impl ModelControl {
    /// Loads `name` without the models of its steps. False if the model is loaded and nothing has
    /// changed.
    pub(super) fn load_model(
        &self,
        name: &str,
        overrides: LoadOverrides,
        by_name: bool,
    ) -> Result<bool, LoadError> {
        let loaded = self.load_if_changed(name, overrides, by_name);
        if self.loader.polls {
            self.show_failure(name, loaded.as_ref().err());
        }
        loaded
    }

    fn load_if_changed(
        &self,
        name: &str,
        overrides: LoadOverrides,
        by_name: bool,
    ) -> Result<bool, LoadError> {
        if self.is_stopping() {
            return Err(LoadError::Stopping);
        }
        let unread = |e: Error| {
            tracing::error!("failed to load '{name}', failed to poll from model repository: {e}");
            LoadError::NotPolled(e)
        };
        // A model whose files come with the request need not be in a repository.
        let from_repository = overrides.files.is_empty();
        let source = from_repository.then(|| self.repositories.only(name));
        let source = source.transpose().map_err(unread)?;
        // Before the files are read: one that changes meanwhile is a change for the next load.
        let fingerprint = source.as_ref().map(ModelSource::fingerprint).transpose();
        let fingerprint = fingerprint.map_err(unread)?;
        // A model that was deleted and added again is another one.
        let is_same = |old: &Arc<Model>| !old.load_info.deleted.load(Ordering::Relaxed);
        let old = self.models.get(name).filter(is_same);
        self.loader.backends.refresh();
        let cancel = Arc::new(LoadCancel::default());
        let _loading = self.loading(name, &cancel);
        // Held until the load is complete: a backend that was opened for the comparison stays open
        // for the model.
        let newest = old.as_deref().filter(|_| !self.loader.polls);
        let newest = newest.and_then(|old| self.newest_backend(old, &cancel));
        if let Some(old) = &old
            && overrides.config.is_none()
            && fingerprint.is_some()
            && old.load_info.fingerprint == fingerprint
            && old.versions.values().all(|v| v.is_sound() || v.is_unloaded())
            && old.is_loaded()
            && !newest.as_ref().is_some_and(|now| uses_another(old, now))
        {
            old.load_info.requested_by_name.fetch_or(by_name, Ordering::Relaxed);
            return Ok(false);
        }
        let fetching = Instant::now();
        let files = match &source {
            Some(source) => source.materialise(cancel.flag()).map_err(unread)?,
            None => overrides.directory().map_err(|e| LoadError::Internal(e.message))?,
        };
        let fetch = fetching.elapsed();
        let found = VersionDirs::read(files.path()).map_err(unread)?;
        // A polled model is refused by its version policy, which leaves the reason in the index.
        if found.versions.is_empty() && !self.loader.polls {
            tracing::error!("failed to load '{name}', no version is available");
            return Err(LoadError::NoVersion);
        }
        self.log_change(name, old.as_deref());
        let origin = match (&overrides.config, from_repository) {
            (_, false) => LoadOrigin::Uploaded,
            (Some(_), true) => LoadOrigin::Configured,
            (None, true) => LoadOrigin::Repository,
        };
        let config = overrides.config;
        let was_requested = |old: &Arc<Model>| {
            old.is_loaded() && old.load_info.requested_by_name.load(Ordering::Relaxed)
        };
        let by_name = by_name || old.as_ref().is_some_and(was_requested);
        let old_entry = old.clone();
        let checked = Arc::default();
        let request = LoadRequest {
            read: Arc::default(),
            config,
            origin,
            old: old_entry,
            fingerprint,
            fetch,
            by_name,
            cancel,
            checked,
        };
        match self.loader.prepare(name, &files, &self.models, request) {
            Ok(prepared) => match self.open_and_publish(prepared, old.as_deref()) {
                // The drain closes what was opened.
                _ if self.is_stopping() => Err(LoadError::Stopping),
                opened => opened.map(|()| true),
            },
            Err(_) if self.is_stopping() => Err(LoadError::Stopping),
            Err(refused) => {
                let (error, unreadable) = (refused.error.clone(), refused.unreadable);
                self.publish_refusal(name, old.as_deref(), refused);
                // A loaded model continues to serve; the response says why it was not replaced.
                Err(match unreadable && !old.is_some_and(|old| old.is_loaded()) {
                    true => LoadError::Unreadable(error),
                    false => LoadError::Refused(error),
                })
            }
        }
    }

    /// The backend version that a load of `model` would choose now.
    fn newest_backend(&self, model: &Model, cancel: &LoadCancel) -> Option<Arc<PluginBackend>> {
        self.loader.backends.for_model(model.config.as_deref()?, cancel.flag()).ok()
    }

    fn open_and_publish(
        &self,
        mut prepared: PreparedModel,
        old: Option<&Model>,
    ) -> Result<(), LoadError> {
        let mut in_use = prepared.priority() == InstancePriority::Max;
        self.models.visit(|model| {
            in_use |= model.priority() == InstancePriority::Max && model.is_loaded();
        });
        prepared.set_max_priority_in_use(in_use);
        let is_ensemble = prepared.step_models().is_some();
        let _ensembles = is_ensemble.then(|| self.ensembles.lock());
        if let Some(e) = self.circular_dependency(&prepared) {
            let config = prepared.model.config.clone();
            let refused = RefusedModel { config, ..e.clone().into() };
            self.publish_refusal(&prepared.model.id, old, refused);
            return Err(LoadError::Refused(e));
        }
        if old.is_some_and(Model::is_loaded) {
            self.replace(&prepared)
        } else {
            self.open(&prepared)
        }
    }

    /// Publishes a model that serves nothing yet, then opens its versions. Each is served as soon
    /// as it is open.
    fn open(&self, prepared: &PreparedModel) -> Result<(), LoadError> {
        self.publish(&prepared.model)?;
        let mut failed = Vec::new();
        for version in &prepared.versions {
            // Drain unloads what the table shows as loaded; versions that are not open yet must not
            // be opened then.
            if self.is_stopping() {
                abandon_versions(&prepared.model, "Server exiting");
                return Err(LoadError::Stopping);
            }
            if let Err(e) = prepared.load(version) {
                failed.push((version.0.number, e));
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(LoadError::Versions(failed)) }
    }

    /// Opens all versions while the old ones serve, then publishes them in one write. If one fails,
    /// none is published.
    fn replace(&self, prepared: &PreparedModel) -> Result<(), LoadError> {
        let mut opened: Vec<(&Arc<ModelVersion>, Arc<OpenVersion>)> = Vec::new();
        let mut failed = Vec::new();
        for version in &prepared.versions {
            if self.is_stopping() {
                return Err(LoadError::Stopping);
            }
            match prepared.open("re-loading", version) {
                Ok(served) => opened.push((&version.0, served)),
                Err(e) => failed.push((version.0.number, e)),
            }
        }
        let mut resized = Vec::new();
        for version in &prepared.resized {
            if !failed.is_empty() {
                break;
            }
            match prepared.resize(version) {
                Ok(change) => resized.push(change),
                Err(e) => failed.push((version.number, e)),
            }
        }
        if !failed.is_empty() {
            let name = &prepared.model.name;
            tracing::error!("re-loading '{name}' failed, its previous versions stay loaded");
            return Err(LoadError::Versions(failed));
        }
        opened.into_iter().for_each(|(version, served)| prepared.model.set_ready(version, served));
        let old = self.models.get(&prepared.model.id);
        let until = Instant::now() + self.loader.sequence_drain;
        let replaced = |version: &&Arc<ModelVersion>| {
            version.is_loaded() && !prepared.kept.contains(&version.number)
        };
        let versions = old.iter().flat_map(|old| old.versions.values());
        let versions: Vec<_> = versions.filter(replaced).collect();
        // Before the new versions get requests: a request that continues a sequence must find the
        // version on which it began.
        let ending: Vec<_> = versions.iter().filter_map(|version| version.ending(until)).collect();
        ending.into_iter().for_each(|version| prepared.model.ending.add(version));
        self.publish(&prepared.model)?;
        resized.into_iter().for_each(InstanceResize::complete);
        for version in versions {
            if !prepared.versions.iter().any(|(new, _)| new.number == version.number) {
                let name = &prepared.model.name;
                tracing::info!("unloading: {name}:{}", version.number);
                let changes = &self.models.loads.changes;
                changes.add(name, Some(version.number), ChangeKind::Unloading, "replaced");
                version.log_unload(name);
            }
            if !version.is_sequence() {
                version.retire();
            }
        }
        self.close_ended(&prepared.model.ending);
        Ok(())
    }

    /// Closes replaced versions when their sequences have ended.
    fn close_ended(&self, ending: &Arc<EndingVersions>) {
        let ending = Arc::clone(ending);
        self.runtime.spawn(async move {
            while !ending.close_ended(Instant::now()) {
                tokio::time::sleep(CLOSE_INTERVAL).await;
            }
        });
    }

    /// The texts of TRTIS.
    fn log_change(&self, name: &str, old: Option<&Model>) {
        match (old, self.models.get(name)) {
            (Some(_), _) => tracing::info!("Updating config for model '{name}'"),
            (None, Some(_)) => tracing::info!("New status tracking for re-added model '{name}'"),
            (None, None) => tracing::info!("New status tracking for model '{name}'"),
        }
    }

    /// Makes the reason of a failed load visible until a load succeeds: on the versions that still
    /// serve, else as that of the model.
    fn show_failure(&self, name: &str, failure: Option<&LoadError>) {
        let model = self.models.get(name);
        let loaded = model.as_ref().filter(|model| model.is_loaded());
        match (loaded, failure) {
            (_, Some(LoadError::Stopping)) => {}
            (Some(model), failure) => model.set_reload_failure(failure.map(LoadError::to_string)),
            (None, Some(LoadError::NotPolled(e))) => {
                let old = model.as_deref().filter(|m| !m.load_info.deleted.load(Ordering::Relaxed));
                self.publish_refusal(name, old, not_polled(e.clone()));
            }
            (None, _) => {}
        }
    }

    /// Publishes the reason of a refused configuration, unless an older load of the model still
    /// serves.
    fn publish_refusal(&self, name: &str, old: Option<&Model>, refused: RefusedModel) {
        if old.is_none_or(|old| !old.is_loaded()) {
            let RefusedModel { error, config, unreadable, read } = refused;
            let refused = Model::refused(name, old, config, refusal_reason(error));
            refused.load_info.unreadable.store(unreadable, Ordering::Relaxed);
            refused.keep_read_config(read);
            // Fails only while the server stops, when the reason need not be shown.
            let _ = self.publish(&refused);
        }
    }

    /// Puts `model` into the table.
    pub(super) fn publish(&self, model: &Arc<Model>) -> Result<(), LoadError> {
        let stopping = self.stopping.lock();
        if *stopping {
            return Err(LoadError::Stopping);
        }
        self.models.update(|models| drop(models.insert(model.id.to_string(), model.clone())));
        Ok(())
    }

    /// Why the ensemble cannot be loaded, if it closes a cycle with loaded ensembles.
    fn circular_dependency(&self, prepared: &PreparedModel) -> Option<Error> {
        let own = &prepared.model;
        let ids = |ensemble: &str, steps: Vec<String>| {
            steps.iter().map(|step| self.models.resolve_step(ensemble, step)).collect::<Vec<_>>()
        };
        let own_steps = ids(&own.id, prepared.step_models()?);
        let loaded = self.models.all().into_iter().filter(|(_, model)| model.is_loaded());
        let mut steps: EnsembleSteps = loaded
            .filter_map(|(id, model)| {
                let steps = model.load_info.ensemble.as_ref()?.step_models();
                Some((id.clone(), ids(&id, steps)))
            })
            .collect();
        steps.insert(own.id.to_string(), own_steps);
        let mut order = ensemble::load_order(&steps, |_| true);
        order.refused.remove(&*own.id).map(Error::invalid)
    }

    /// After a panic: versions that were being opened become UNAVAILABLE.
    pub(super) fn abandon_after_panic(&self, name: &str) {
        if let Some(model) = self.models.get(name) {
            abandon_versions(&model, "the server panicked while loading; see its log");
        }
    }
}

/// A version of `model` uses another backend version than `backend`.
fn uses_another(model: &Model, backend: &Arc<PluginBackend>) -> bool {
    let mut used = model.versions.values().filter_map(|v| v.served()?.backend.clone());
    used.any(|used| !used.is(backend))
}

/// LOADING versions become UNAVAILABLE.
fn abandon_versions(model: &Model, reason: &str) {
    let loading = model.versions.values().filter(|v| v.status().0 == VersionState::Loading);
    loading.for_each(|version| model.set_unavailable(version, reason));
}
