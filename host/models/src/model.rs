//! A model in the table: its effective configuration, its versions, and how it was loaded.

use super::ending_versions::EndingVersions;
use super::ensemble::EnsembleBuilder;
use super::lifecycle::{ModelVersion, VersionState};
use super::{ConfigSource, OpenVersion};
use crate::instance::priority::InstancePriority;
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use trtserver_base::clock::now_ns;
use trtserver_model_config::model_id::split_model_id;
use trtserver_model_store::fingerprint::ModelFingerprint;
use trtserver_proto::v2::ModelConfig;

/// A model: its effective configuration and its versions.
pub struct Model {
    /// Its name, with `--model-namespacing` preceded by its repository.
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// Normalised; `None` when the configuration itself was refused.
    pub config: Option<Arc<ModelConfig>>,
    /// Why the model was refused; it then serves no version.
    pub refusal: Option<String>,
    /// Ascending. Includes versions that were served before and are no longer selected.
    pub versions: BTreeMap<i64, Arc<ModelVersion>>,
    /// The highest READY version: serves requests that name no version.
    pub(super) latest: ArcSwapOption<OpenVersion>,
    /// Held while `latest` is found and stored: versions become READY on several threads.
    latest_lock: Mutex<()>,
    /// Replaced versions whose sequences have not ended; shared with the entries before and after.
    pub(super) ending: Arc<EndingVersions>,
    /// Why the current files were not loaded, while the versions of an earlier load serve.
    reload_failure: ArcSwapOption<String>,
    /// When this entry was created, CLOCK_MONOTONIC.
    created_ns: u64,
    pub(super) load_info: LoadInfo,
}

/// How a model was loaded. Later loads and unloads depend on it.
#[derive(Default)]
pub(super) struct LoadInfo {
    /// State of the directory when it was read; `None` when the files came with the load request.
    pub fingerprint: Option<ModelFingerprint>,
    /// Set for an ensemble, which is reopened when the model of a step is reloaded.
    pub ensemble: Option<Arc<EnsembleBuilder>>,
    /// Loaded and not unloaded since.
    pub should_serve: AtomicBool,
    /// Loaded by name, not only as a step of an ensemble.
    pub requested_by_name: AtomicBool,
    /// Its configuration file is missing or cannot be read: the model does not count for strict
    /// readiness.
    pub unreadable: AtomicBool,
    /// What was read of a model that was refused then.
    pub read: OnceLock<ReadConfig>,
    /// The text of the configuration that was loaded.
    pub source: Option<ConfigSource>,
    /// Its directory was removed: a model that is added under this name later has new counters.
    pub deleted: AtomicBool,
}

/// The configuration of a refused model as its file has it, and the versions that it selects.
pub struct ReadConfig {
    pub config: ModelConfig,
    pub versions: Vec<i64>,
}

impl Model {
    pub fn new(
        id: &str,
        config: Option<Arc<ModelConfig>>,
        refusal: Option<String>,
        versions: BTreeMap<i64, Arc<ModelVersion>>,
    ) -> Arc<Self> {
        Self::loaded_by(id, config, refusal, versions, Arc::default(), LoadInfo::default())
    }

    pub(super) fn prepared(
        id: &str,
        config: Arc<ModelConfig>,
        versions: BTreeMap<i64, Arc<ModelVersion>>,
        ending: Arc<EndingVersions>,
        load_info: LoadInfo,
    ) -> Arc<Self> {
        Self::loaded_by(id, Some(config), None, versions, ending, load_info)
    }

    fn loaded_by(
        id: &str,
        config: Option<Arc<ModelConfig>>,
        refusal: Option<String>,
        versions: BTreeMap<i64, Arc<ModelVersion>>,
        ending: Arc<EndingVersions>,
        load_info: LoadInfo,
    ) -> Arc<Self> {
        let (id, name, latest) = (id.into(), split_model_id(id).1.into(), ArcSwapOption::empty());
        let reload_failure = ArcSwapOption::empty();
        let created_ns = now_ns();
        let model = Self {
            id,
            name,
            config,
            refusal,
            versions,
            latest,
            latest_lock: Mutex::default(),
            ending,
            reload_failure,
            created_ns,
            load_info,
        };
        // Versions that a reload leaves open are READY.
        model.refresh_latest();
        Arc::new(model)
    }

    /// A model that was refused; `config`, if that is not the cause. Versions of the `old` entry
    /// stay visible.
    pub(super) fn refused(
        id: &str,
        old: Option<&Model>,
        config: Option<Arc<ModelConfig>>,
        reason: String,
    ) -> Arc<Self> {
        let versions = old.map(Model::unserved_versions).unwrap_or_default();
        Self::new(id, config, Some(reason), versions)
    }

    /// Takes over what was read of a refused model.
    pub(super) fn keep_read_config(&self, read: Arc<OnceLock<ReadConfig>>) {
        if let Some(read) = Arc::into_inner(read).and_then(OnceLock::into_inner) {
            let _ = self.load_info.read.set(read);
        }
    }

    /// What was read of a refused model, if its configuration could be read.
    pub fn read_config(&self) -> Option<&ReadConfig> {
        self.load_info.read.get().filter(|_| self.refusal.is_some())
    }

    /// The text of the configuration that was loaded; `None` without a file, or if it is long.
    pub fn config_source(&self) -> Option<&ConfigSource> {
        self.load_info.source.as_ref()
    }

    /// A copy without the refusal: after an unload it no longer matters.
    pub(super) fn without_refusal(&self) -> Arc<Self> {
        Self::new(&self.id, self.config.clone(), None, self.unserved_versions())
    }

    fn unserved_versions(&self) -> BTreeMap<i64, Arc<ModelVersion>> {
        let copy =
            |(number, version): (&i64, &Arc<ModelVersion>)| (*number, version.unserved_copy());
        self.versions.iter().map(copy).collect()
    }

    /// Its repository with `--model-namespacing`, else empty.
    pub fn namespace(&self) -> &str {
        split_model_id(&self.id).0
    }

    /// Loaded and not unloaded since, though it may have failed.
    pub(super) fn should_serve(&self) -> bool {
        self.load_info.should_serve.load(Ordering::Relaxed)
    }

    pub(super) fn priority(&self) -> InstancePriority {
        self.config.as_deref().map_or_else(InstancePriority::default, InstancePriority::from_config)
    }

    /// At least one version is loaded.
    pub fn is_loaded(&self) -> bool {
        self.versions.values().any(|v| v.is_loaded())
    }

    /// Remembers why a reload failed, while the versions of an earlier load serve; `None` when
    /// nothing is wrong any more.
    pub(super) fn set_reload_failure(&self, reason: Option<String>) {
        self.reload_failure.store(reason.map(Arc::new));
    }

    /// See [`Model::set_reload_failure`].
    pub fn reload_failure(&self) -> Option<Arc<String>> {
        self.reload_failure.load_full()
    }

    /// Why the files were not loaded as they are now, whether versions of an earlier load serve or
    /// none does.
    pub fn load_failure(&self) -> Option<String> {
        if let Some(reason) = self.reload_failure() {
            return Some(reason.to_string());
        }
        let failed = |version: &Arc<ModelVersion>| {
            let (state, reason) = version.loaded_as();
            (state == VersionState::Unavailable && !version.is_unloaded()).then_some(reason)
        };
        self.refusal.clone().or_else(|| self.versions.values().find_map(failed))
    }

    /// State of one of its versions, and the reason why it is not served or not reloaded.
    pub fn version_status(&self, version: &ModelVersion) -> (VersionState, String) {
        let (state, reason) = (*version.status()).clone();
        match self.reload_failure().filter(|_| state == VersionState::Ready) {
            Some(failure) => (state, format!("not reloaded: {failure}")),
            None => (state, reason),
        }
    }

    /// When this entry was created, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) fn created_ns(&self) -> u64 {
        self.created_ns
    }

    /// Numbers of the READY versions, ascending.
    pub fn ready_versions(&self) -> Vec<i64> {
        self.versions.values().filter(|v| v.is_ready()).map(|v| v.number).collect()
    }

    /// LOADING to READY; for an ensemble that is reopened also READY or UNAVAILABLE to READY.
    pub fn set_ready(&self, version: &ModelVersion, served: Arc<OpenVersion>) {
        version.set_ready(served);
        self.refresh_latest();
    }

    /// LOADING to UNAVAILABLE, with the reason of the failure.
    pub fn set_unavailable(&self, version: &ModelVersion, reason: impl Into<String>) {
        version.set_unavailable(reason.into());
        self.refresh_latest();
    }

    /// READY to UNLOADING. Requests in flight keep the open version; its last user completes the
    /// unload.
    pub(super) fn set_unloading(&self, version: &ModelVersion) {
        version.set_unloading(&self.name);
        self.refresh_latest();
    }

    fn refresh_latest(&self) {
        let _one = self.latest_lock.lock();
        let mut loaded = self.versions.values().rev().filter(|v| v.is_loaded());
        self.latest.store(loaded.find_map(|v| v.served()));
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
