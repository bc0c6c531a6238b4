//! First steps of a load: reads a model's directory and configuration, completes and checks it.

use super::super::ending_versions::EndingVersions;
use super::super::ensemble::EnsembleBuilder;
use super::super::labels::OutputLabels;
use super::super::load_limits::{LoadLimits, LoadMemory};
use super::super::model::{LoadInfo, ReadConfig};
use super::super::scheduling::SchedulingPlan;
use super::super::{ChangeKind, ConfigSource, Model, ModelTable, ensemble, warmup};
use super::ModelVersion;
use super::adapter_only_settings::without_effect;
use super::autocomplete::autocomplete_config;
use super::client_loads::{
    LoadOrigin, allowed_entries, code_refused, expect_local, judge_model_files,
};
use super::prepared::{ModelBuilder, PreparedModel};
use super::refusal::{ModelRefusal, RefusedModel, about_versions, show_origin};
use super::selected_versions::{
    expect_bare_versions, require_versions, selected_dirs, selected_versions,
};
use super::unchanged_versions::UnchangedVersions;
use super::version_builder::{CompletedVersion, VersionBuilder};
use crate::instance::limit::InstanceLimit;
use crate::instance::load_cancel::LoadCancel;
use crate::late_requests::LateRequests;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::LedgerOwner;
use trtserver_base::stats::{LatencySettings, VersionStats};
use trtserver_base::timer::DeadlineTimer;
use trtserver_model_config::WithOwnBackend;
use trtserver_model_config::model_id;
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_model_config::{
    ConfigError, ConfigPart, ConfigWarning, ENSEMBLE, FileProbe, InstanceSupport, MachineFacts,
    PlatformDirectory, VersionListing, implied_backend,
};
use trtserver_model_files::FilePlaces;
use trtserver_model_store::ModelDir;
use trtserver_model_store::fingerprint::ModelFingerprint;
use trtserver_plugin_host::Backends;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::isolation;
use trtserver_proto::v2::ModelConfig;
use trtserver_request::ModelSignature;
use trtserver_scheduler::limiter::RateLimiter;

/// Settings and backends that models are loaded with.
pub struct ModelLoader {
    pub backends: Arc<Backends>,
    pub machine: Arc<MachineFacts>,
    /// Refuse incomplete configurations instead of asking the backend to complete them.
    pub strict: bool,
    /// The same for the models of bare repositories.
    pub strict_bare: bool,
    /// Configurations follow the rules of v1.x ([`trtserver_model_config::check_trtis_rules`]).
    pub trtis_rules: bool,
    /// Use `configs/NAME.pbtxt` of the models that have it.
    pub config_name: Option<String>,
    /// How often the opening of a version is tried again.
    pub retries: u64,
    pub limits: LoadLimits,
    pub instance_limit: Arc<InstanceLimit>,
    /// Models loaded at the same time.
    pub threads: usize,
    /// How long a closing instance waits for outstanding requests.
    pub drain: Duration,
    /// How long sequences of a replaced version have to end.
    pub sequence_drain: Duration,
    /// Models may be reloaded: fingerprints of their directories are kept.
    pub reloadable: bool,
    /// Files decide what is loaded, not requests: versions keep their backend while their files are
    /// the same, and removed ones keep their counters.
    pub polls: bool,
    /// Where links of models may lead, beside the model's own directory.
    pub link_roots: Vec<PathBuf>,
    /// `--allow-uploaded-code`
    pub uploaded_code: bool,
    /// Calls queues at their deadlines.
    pub timer: &'static DeadlineTimer,
    /// What versions record beside the counters.
    pub latency: LatencySettings,
    /// The last number of a batch, for traces; unique in the process.
    pub batch_numbers: Arc<AtomicU64>,
    /// `None` without `--rate-limit=execution_count`.
    pub limiter: Option<Arc<RateLimiter>>,
    /// Clients are served in turn.
    pub fair: bool,
    pub late_requests: LateRequests,
}

/// What a load of one model starts from.
#[derive(Default)]
pub(super) struct LoadRequest {
    /// Replaces the configuration file.
    pub config: Option<ModelConfig>,
    /// Who gives configuration and files.
    pub origin: LoadOrigin,
    /// The model's entry before the load. Its counters continue.
    pub old: Option<Arc<Model>>,
    pub fingerprint: Option<ModelFingerprint>,
    /// How long the files of the model were fetched.
    pub fetch: Duration,
    /// Requested by name, not as a step of an ensemble.
    pub by_name: bool,
    pub cancel: Arc<LoadCancel>,
    /// Set to the configuration of the file once it was read.
    pub read: Arc<OnceLock<ReadConfig>>,
    /// Set to the complete configuration once it was checked.
    pub checked: Arc<OnceLock<Arc<ModelConfig>>>,
}

impl ModelLoader {
    /// Prepares a model: its configuration is read, completed, normalised and checked, its versions
    /// are selected. Warnings are logged.
    ///
    /// # Errors
    /// Its configuration is refused, or a file cannot be read.
    pub(super) fn prepare(
        &self,
        id: &str,
        files: &Arc<ModelDir>,
        models: &Arc<ModelTable>,
        request: LoadRequest,
    ) -> Result<PreparedModel, RefusedModel> {
        let (checked, read) = (Arc::clone(&request.checked), Arc::clone(&request.read));
        let (_, name) = model_id::split_model_id(id);
        let mut log =
            |warning: ConfigWarning| tracing::warn!("model '{name}': {}", warning.message);
        let prepared = self.prepare_with(id, files, models, request, &mut log);
        prepared.map_err(|refusal| {
            let error = show_origin(files, refusal.error);
            models.loads.changes.add(name, None, ChangeKind::Failed, &error.message);
            let (config, unreadable) = (checked.get().cloned(), refusal.unreadable);
            RefusedModel { error, config, unreadable, read }
        })
    }

    /// As [`ModelLoader::prepare`], with the warnings given to `warn`.
    pub(super) fn prepare_with(
        &self,
        id: &str,
        files: &Arc<ModelDir>,
        models: &Arc<ModelTable>,
        request: LoadRequest,
        warn: &mut dyn FnMut(ConfigWarning),
    ) -> Result<PreparedModel, ModelRefusal> {
        let begin = Instant::now();
        let (namespace, name) = model_id::split_model_id(id);
        let dir = files.path();
        let found = VersionDirs::read(dir)?;
        for warning in found.warnings.iter().cloned() {
            warn(ConfigWarning { field: String::new(), message: warning });
        }
        let places = self.places(dir);
        let read = || {
            let read = self.read_with_source(name, files, &places);
            read.map_err(|error| ModelRefusal { unreadable: true, ..error.into() })
        };
        let requested = request.config.as_ref().and_then(ConfigSource::from_request);
        let ((mut config, asks_local), source) = match request.config {
            Some(config) if request.origin.is_request() => {
                (self.without_loosening(config, name, files, &places), requested)
            }
            Some(config) => ((config, None), requested),
            None => {
                let (config, source) = read()?;
                ((config, None), source)
            }
        };
        let versions = selected_versions(&config, &found).versions;
        let _ = request.read.set(ReadConfig { config: config.clone(), versions });
        let fetching = Instant::now();
        files.fetch(&selected_dirs(&config, &found), request.cancel.flag())?;
        let fetched = fetching.elapsed();
        let own = self.own_backend(&config, &places, &found, request.origin)?;
        let of_model = (name, &places, &found, request.origin, self.is_strict(files));
        let (backend, completed) = self
            .complete(&mut config, of_model, own.as_ref(), &request.cancel)
            .map_err(|refusal| about_versions(refusal, dir, &found))?;
        if let Some(parameter) = asks_local {
            expect_local(&config, backend.as_deref())?;
            config.parameters.insert(isolation::KEY.to_owned(), parameter);
        }
        if !backend.as_ref().is_some_and(|backend| backend.is_adapted()) {
            without_effect(&config, dir, &found).into_iter().for_each(&mut *warn);
        }
        let support = instance_support(backend.as_deref());
        let checked = trtserver_model_config::check_config(
            &config,
            &self.machine,
            &support,
            self.limits.instances,
        );
        match checked {
            Ok(warnings) => warnings.into_iter().for_each(warn),
            Err(reasons) => ModelRefusal::by(reasons)?,
        }
        if self.trtis_rules {
            ModelRefusal::by(trtserver_model_config::check_trtis_rules(&config))?;
        }
        if namespace.is_empty() && ensemble::names_namespace(&config) {
            let why = "is used only with --model-namespacing=true";
            let field = "ensemble_scheduling.step.model_namespace";
            let e = ConfigError::invalid(format!("'{field}' of model '{name}' {why}"));
            return Err(e.about(ConfigPart::Field(field)).into());
        }
        let config = Arc::new(config);
        let _ = request.checked.set(Arc::clone(&config));
        let cancel = Arc::clone(&request.cancel);
        let ending = request.old.as_ref().map(|old| Arc::clone(&old.ending)).unwrap_or_default();
        let opening = (request.cancel, Arc::clone(&ending));
        let table = (id, models);
        let builder =
            self.builder(&config, (files, &places), backend.clone(), completed, table, opening)?;
        let old = request.old.as_deref();
        // One of its own changes with the model's files, which are compared.
        let newest = backend.as_ref().filter(|_| !self.polls && own.is_none());
        let unchanged =
            UnchangedVersions::between(old, request.fingerprint.as_ref(), &config, newest);
        let (mut by_number, mut versions, mut kept) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut resized = Vec::new();
        for (number, dir_name) in
            require_versions(&config, &found).map_err(|e| about_versions(e.into(), dir, &found))?
        {
            let before = old.and_then(|old| old.versions.get(&number));
            let stays = unchanged.version(number, &dir_name);
            if let Some(version) = stays.and_then(|v| builder.kept(v, unchanged.resized)) {
                if unchanged.resized {
                    resized.push(Arc::clone(&version));
                }
                by_number.insert(number, version);
                kept.push(number);
                continue;
            }
            let (instances, buckets) =
                (builder.instances(), trtserver_model_config::histogram_buckets(&config));
            let stats = match before {
                Some(before) => before.stats.continued(instances, buckets),
                None => Arc::new(VersionStats::with_buckets(instances, buckets, &self.latency)),
            };
            let version = ModelVersion::new(number, stats);
            by_number.insert(number, Arc::clone(&version));
            versions.push((version, dir_name));
        }
        for version in old.into_iter().flat_map(|old| old.versions.values()) {
            // Versions that were served before stay visible while they unload, or as long as their
            // directory exists.
            let visible = version.is_loaded() || found.versions.contains_key(&version.number);
            if visible || self.polls {
                by_number.entry(version.number).or_insert_with(|| version.unserved_copy());
            }
        }
        let load_info = LoadInfo {
            fingerprint: request.fingerprint,
            ensemble: match &builder {
                ModelBuilder::Backend(_) => None,
                ModelBuilder::Ensemble(builder) => Some(Arc::clone(builder)),
            },
            should_serve: true.into(),
            requested_by_name: request.by_name.into(),
            unreadable: false.into(),
            read: OnceLock::new(),
            source,
            deleted: false.into(),
        };
        let model = Model::prepared(id, config, by_number, ending, load_info);
        let parse = begin.elapsed().saturating_sub(fetched);
        let (retries, fetch) = (self.retries, request.fetch + fetched);
        Ok(PreparedModel {
            builder,
            model,
            versions,
            kept,
            resized,
            retries,
            cancel,
            loads: Arc::clone(&models.loads),
            fetch,
            parse,
        })
    }

    /// The backend whose library is in the model's directory, or in that of a version, the newest
    /// first, as Triton looks for it.
    fn own_backend(
        &self,
        config: &ModelConfig,
        places: &FilePlaces,
        found: &VersionDirs,
        origin: LoadOrigin,
    ) -> Result<Option<Arc<PluginBackend>>> {
        let dir = places.model_dir();
        let versions = found.versions.values().rev().map(|version| dir.join(version));
        let dirs: Vec<_> = versions.chain([dir.to_owned()]).collect();
        let judge = |library: &Path| {
            if self.refuses_code(origin) {
                return Err(code_refused(&config.name, &format!("'{}'", library.display())));
            }
            places.judge(library).map(drop).map_err(|refusal| {
                Error::invalid(format!("model '{}': backend library {refusal}", config.name))
            })
        };
        let backend = match config.backend.as_str() {
            "" => implied_backend(&config.platform).unwrap_or_default(),
            named => named,
        };
        self.backends.in_model_dirs(backend, &dirs, judge)
    }

    /// Adds what the configuration leaves out, from the directory, the backend and the defaults.
    /// Returns the model's backend (ensembles have none), and what it hands over for opening a
    /// version.
    fn complete(
        &self,
        config: &mut ModelConfig,
        (name, places, found, origin, strict): (&str, &FilePlaces, &VersionDirs, LoadOrigin, bool),
        own: Option<&Arc<PluginBackend>>,
        cancel: &LoadCancel,
    ) -> Result<(Option<Arc<PluginBackend>>, Option<CompletedVersion>), ModelRefusal> {
        let (mut listings, dir) = (Vec::new(), places.model_dir());
        for (number, dir_name) in &found.versions {
            let dir = dir.join(dir_name);
            let entries = allowed_entries(name, places, &dir)?;
            listings.push(VersionListing { number: *number, dir, entries });
        }
        let with_own = own.map(|own| WithOwnBackend { installed: &self.backends, own });
        let (platforms, probe): (&dyn PlatformDirectory, &dyn FileProbe) = match &with_own {
            Some(with_own) => (with_own, with_own),
            None => (&*self.backends, &*self.backends),
        };
        let probe = Some(probe).filter(|_| !strict);
        trtserver_model_config::complete_config(config, name, &listings, platforms, probe)
            .map_err(|e| self.with_unusable_backends(e.into()))?;
        let backend = match own {
            // An ensemble that names a backend is refused by the checks.
            _ if config.platform == ENSEMBLE => None,
            Some(own) => Some(Arc::clone(own)),
            None => Some(self.backends.for_model(config, cancel.flag())?),
        };
        if let Some(backend) = &backend
            && self.refuses_code(origin)
            && !backend.facts.has_data_models()
        {
            let what = format!("a model of backend '{}'", backend.facts.name);
            return Err(code_refused(name, &what).into());
        }
        if let Some(backend) = &backend {
            expect_bare_versions(name, backend, found)?;
        }
        judge_model_files(config, places, found)?;
        let mut support = instance_support(backend.as_deref());
        if let Some(backend) = &backend
            && self.asks_open(config, backend, &support)
        {
            support.take(&backend.facts_when_open(config, cancel.flag())?);
        }
        let completed = match backend.as_ref().filter(|_| !strict) {
            Some(backend) => {
                let normalise = |config: &mut ModelConfig| {
                    trtserver_model_config::normalise_config(config, &self.machine, &support);
                };
                autocomplete_config(config, backend, dir, found, normalise, cancel)?
            }
            None => None,
        };
        trtserver_model_config::normalise_config(config, &self.machine, &support);
        Ok((backend, completed))
    }

    /// Whether something depends on what the backend says of itself once it is open: it is opened
    /// for that. The library of an adapter does not know what the backend prefers.
    fn asks_open(
        &self,
        config: &ModelConfig,
        backend: &PluginBackend,
        support: &InstanceSupport,
    ) -> bool {
        let groups = &config.instance_group;
        let prefers = groups.is_empty() || groups.iter().any(|group| group.count == 0);
        prefers && backend.is_adapted()
            || trtserver_model_config::chooses_gpu(config, &self.machine, support)
    }

    /// What opens the versions of a model whose configuration was checked. Reads the other files
    /// that it names.
    fn builder(
        &self,
        config: &Arc<ModelConfig>,
        (files, places): (&Arc<ModelDir>, &FilePlaces),
        backend: Option<Arc<PluginBackend>>,
        completed: Option<CompletedVersion>,
        (id, models): (&str, &Arc<ModelTable>),
        (cancel, ending): (Arc<LoadCancel>, Arc<EndingVersions>),
    ) -> Result<ModelBuilder, ModelRefusal> {
        let about = |field| move |e: ConfigError| e.about(ConfigPart::Field(field));
        let mut memory = LoadMemory::new(self.limits.memory);
        let labels =
            OutputLabels::load(places, &config.output, &mut memory).map_err(about("output"));
        let (labels, without_labels) = match labels {
            Ok(labels) => (labels, Ok(())),
            Err(e) => (OutputLabels::default(), Err(ModelRefusal::from(e))),
        };
        let mut rest = || {
            let mut signature =
                ModelSignature::new(config, |output| labels.for_output(output).cloned())?;
            signature.owner = LedgerOwner::model(&config.name);
            signature.completed_batch_size =
                completed.as_ref().is_some_and(|(_, completed)| completed.adds_batch_size);
            // What the steps of an ensemble send was checked when they sent it.
            signature.free_outputs = backend.as_ref().is_none_or(|b| b.facts.has_free_outputs());
            let scheduling = SchedulingPlan::new(config, &mut signature, places, &mut memory)?;
            let signature = Arc::new(signature);
            let warmup = warmup::build_samples(config, &signature, places, &mut memory);
            Ok((signature, scheduling, warmup.map_err(about("model_warmup"))?))
        };
        let (signature, scheduling, warmup) = match (without_labels, rest()) {
            (Ok(()), rest) => rest?,
            (Err(e), Ok(_)) => return Err(e),
            (Err(e), Err(rest)) => return Err(e.and(rest)),
        };
        let Some(backend) = backend else {
            return Ok(ModelBuilder::Ensemble(Arc::new(EnsembleBuilder::new(
                id, config, signature, models,
            ))));
        };
        Ok(ModelBuilder::Backend(Box::new(VersionBuilder {
            dir: Arc::clone(files),
            places: places.clone(),
            config: Arc::clone(config),
            signature,
            scheduling,
            max_priority_in_use: false,
            backend,
            machine: Arc::clone(&self.machine),
            completed: Mutex::new(completed),
            drain: self.drain,
            warmup,
            warmup_limit: self.limits.warmup,
            instance_limit: Arc::clone(&self.instance_limit),
            cancel,
            ending,
            timer: self.timer,
            batch_numbers: Arc::clone(&self.batch_numbers),
            responses: models.response_store().cloned(),
            limiter: self.limiter.clone(),
            fair: self.fair,
            wait_target: self.late_requests.wait_target(config)?,
        })))
    }

    /// If no installed backend fits, the right one may be a plugin that could not be opened: names
    /// those.
    fn with_unusable_backends(&self, mut refusal: ModelRefusal) -> ModelRefusal {
        if refusal.error.code == Code::Unsupported {
            for (_, reason) in self.backends.unusable() {
                refusal.error.message.push_str(&format!("; not usable: {reason}"));
            }
        }
        refusal
    }
}

/// What the model's backend supports; an ensemble has no backend and no instances.
fn instance_support(backend: Option<&PluginBackend>) -> InstanceSupport {
    backend.map_or_else(InstanceSupport::every_kind, |backend| {
        InstanceSupport::from_facts(&backend.facts)
    })
}
