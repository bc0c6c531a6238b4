//! Opens one version: backend model, instances and scheduler.

use super::super::backend_use::BackendUse;
use super::super::ending_versions::EndingVersions;
use super::super::open_instances::InstanceResize;
use super::super::response_cache::open_cache;
use super::super::scheduling::SchedulingPlan;
use super::super::{OpenInstances, OpenResources, OpenVersion};
use super::client_loads::judge_model_file;
use super::refusal::show_origin;
use super::{ModelVersion, UsageGuard};
use crate::instance::group::{InstancePlan, plan_instances};
use crate::instance::limit::{InstanceLimit, InstanceReservation};
use crate::instance::load_cancel::LoadCancel;
use crate::instance::load_progress::LoadProgress;
use crate::instance::priority::open_as_instances;
use crate::instance::warmup::WarmupSample;
use crate::instance::worker::InstanceWorker;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::channel;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_base::host_policy::HostPolicy;
use trtserver_base::ledger::LedgerOwner;
use trtserver_base::stats::VersionStats;
use trtserver_base::timer::DeadlineTimer;
use trtserver_device::LoadMeasure;
use trtserver_model_config::MachineFacts;
use trtserver_model_files::FilePlaces;
use trtserver_model_store::ModelDir;
use trtserver_plugin_host::ModelFacts;
use trtserver_plugin_host::backend::{CompletedConfig, PluginBackend};
use trtserver_plugin_host::batch::gpu::pinned_inputs::PinnedInputs;
use trtserver_plugin_host::isolation::{Isolation, choose_isolation};
use trtserver_plugin_host::load_priority;
use trtserver_plugin_host::model::BackendModel;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_request::ModelSignature;
use trtserver_request::buffer::InputPool;
use trtserver_response_cache::ResponseStore;
use trtserver_scheduler::limiter::{InstanceLimits, LimitedName, LimiterMember, RateLimiter};
use trtserver_scheduler::{RequestQueue, Scheduler};

/// A version's number, and the state of its backend from the completion of the configuration.
pub type CompletedVersion = (i64, CompletedConfig);

/// Everything the versions of one model are opened with.
pub struct VersionBuilder {
    pub dir: Arc<ModelDir>,
    pub places: FilePlaces,
    pub config: Arc<ModelConfig>,
    pub signature: Arc<ModelSignature>,
    /// A model of the server has `PRIORITY_MAX`.
    pub max_priority_in_use: bool,
    pub scheduling: SchedulingPlan,
    pub backend: Arc<PluginBackend>,
    pub machine: Arc<MachineFacts>,
    /// State of the backend for opening the version of this number.
    pub completed: Mutex<Option<CompletedVersion>>,
    /// How long a closing instance waits for outstanding requests.
    pub drain: Duration,
    /// Executed by every instance before the version is READY.
    pub warmup: Arc<[WarmupSample]>,
    pub warmup_limit: Option<Duration>,
    pub instance_limit: Arc<InstanceLimit>,
    pub cancel: Arc<LoadCancel>,
    pub ending: Arc<EndingVersions>,
    pub timer: &'static DeadlineTimer,
    pub batch_numbers: Arc<AtomicU64>,
    /// The response cache of the server.
    pub responses: Option<Arc<ResponseStore>>,
    /// `None` without `--rate-limit=execution_count`.
    pub limiter: Option<Arc<RateLimiter>>,
    /// Clients are served in turn.
    pub fair: bool,
}

impl VersionBuilder {
    pub fn plans(&self) -> Vec<InstancePlan> {
        let mut plans = plan_instances(&self.config, self.max_priority_in_use, &self.machine);
        if self.limiter.is_none() {
            plans.iter_mut().for_each(|plan| plan.limits = InstanceLimits::default());
        }
        plans
    }

    /// Admits instances of version `number` to the rate limiter; `None` for each without a demand.
    fn admit(&self, plans: &[InstancePlan], number: i64) -> Result<Vec<InstanceAdmission>> {
        let admit = |plan: &InstancePlan| match &self.limiter {
            None => Ok(None),
            Some(limiter) => {
                let name = LimitedName {
                    model: self.config.name.as_str().into(),
                    version: number,
                    instance: plan.name.to_string(),
                };
                let admitted = limiter.admit(name, &plan.limits, plan.device)?;
                Ok(admitted.map(Arc::new))
            }
        };
        plans.iter().map(admit).collect()
    }

    /// What the completion of the configuration handed over for opening version `number` from
    /// `file`: completions read the default model file.
    fn take_completed(&self, number: i64, file: &str) -> Option<CompletedConfig> {
        if file != self.config.default_model_filename {
            return None;
        }
        self.completed.lock().take_if(|(of, _)| *of == number).map(|(_, completed)| completed)
    }

    /// Opens the backend's models of a version, one for each model file of `plans`:
    /// `cc_model_filenames` may name different files for the GPUs of this machine.
    fn open_models(
        &self,
        signature: &ModelSignature,
        number: i64,
        dir_name: &str,
        plans: &[InstancePlan],
    ) -> Result<Vec<OpenFile>> {
        let mut files: Vec<OpenFile> = Vec::new();
        for plan in plans {
            if files.iter().any(|open| open.file == plan.file) {
                continue;
            }
            self.check_file(dir_name, &plan.file)?;
            let completed = self.take_completed(number, &plan.file);
            let facts = ModelFacts {
                name: &self.config.name,
                version: number,
                dir: self.dir.path(),
                version_dir: &self.dir.path().join(dir_name),
                file: &plan.file,
                config: &self.config,
                signature,
                n_instances: plans.iter().filter(|of| of.file == plan.file).count() as u32,
                threads: plan.host_policy.limit_threads(threads_each(plans.len())),
                host_policy: shared_policy(plans),
                state: completed.as_ref().map_or(std::ptr::null_mut(), CompletedConfig::state),
            };
            let in_process = self.cancel.calls(&self.backend, &self.config)?;
            let model = BackendModel::open(&self.backend, &facts, self.cancel.flag())?;
            drop((in_process, completed));
            self.cancel.opened(&model.health());
            files.push(OpenFile { file: plan.file.clone(), model });
        }
        Ok(files)
    }

    /// Opens `version`, which lies in the directory `dir_name`, with all its instances.
    ///
    /// # Errors
    /// The backend's error, or an instance thread that did not start; nothing stays open.
    pub fn open(
        &self,
        version: &ModelVersion,
        dir_name: &str,
        progress: &Arc<LoadProgress>,
    ) -> Result<Arc<OpenVersion>> {
        self.open_version(version, dir_name, progress).map_err(|e| show_origin(&self.dir, e))
    }

    fn open_version(
        &self,
        version: &ModelVersion,
        dir_name: &str,
        progress: &Arc<LoadProgress>,
    ) -> Result<Arc<OpenVersion>> {
        let (number, usage, plans) = (version.number, version.start_use(), self.plans());
        let count = plans.len();
        progress.expects(count);
        let reserved = self.instance_limit.reserve(count, &self.subject(number))?;
        let admitted = self.admit(&plans, number)?;
        let signature = self.signature.with_owner(LedgerOwner::version(&self.config.name, number));
        let measures = self.measure_gpus(&plans)?;
        let nice = plans.first().map_or_else(load_priority::server_nice, |plan| plan.nice);
        let stack = self.backend.facts.stack_bytes;
        self.warn_of_policies();
        // The process of an isolated model binds its own threads.
        let isolation = choose_isolation(&self.config, self.backend.isolation)?;
        let policy = shared_policy(&plans).filter(|_| isolation == Isolation::None);
        let models = open_as_instances(nice, policy, stack, || {
            self.open_models(&signature, number, dir_name, &plans)
        })?;
        let Some(first) = models.first() else {
            return Err(Error::internal(format!("{} has no instances", self.subject(number))));
        };
        let others = plans.iter().any(|plan| plan.kind != Kind::Gpu);
        let gpu = plans.first().map(|plan| plan.device).filter(|_| !others);
        let has_gpu = plans.iter().any(|plan| plan.kind == Kind::Gpu);
        let in_order = self.scheduling.in_order;
        let policy = self.scheduling.policy(count);
        // Responses in the order of arrival leave no turns.
        let policy = if self.fair && !in_order { policy.fair() } else { policy };
        let queue = RequestQueue::new(policy, &signature, count, in_order, self.timer);
        let weak = |open: &OpenFile| (open.file.clone(), Arc::downgrade(&open.model));
        let models_of_files = models.iter().map(weak).collect();
        let opened = OpenResources { models: models_of_files, dir: Arc::downgrade(&self.dir) };
        // Dropped after a failure, it closes what was opened.
        let instances = OpenInstances::new(&queue, &signature, opened);
        let shared = SharedByInstances {
            version,
            instances: &instances,
            usage: &usage,
            dir: &self.dir,
            threads: threads_each(count),
            progress,
        };
        self.open_instances(&shared, (plans, admitted), reserved, |_| queue.close())?;
        version.set_gpu_growth(measures.iter().map(LoadMeasure::result).collect());
        drop(measures);
        for growth in version.gpu_growth().iter().filter(|growth| growth.loads == 1) {
            tracing::info!(
                "{}: its load has taken {} bytes of GPU {}, by the difference of the free memory",
                self.subject(number),
                growth.bytes,
                growth.device
            );
        }
        let used = BackendUse::from_model(&first.model, has_gpu);
        tracing::info!(
            "model '{}' version {number} uses backend '{}' {} from {} ({})",
            self.config.name,
            used.facts.name,
            used.facts.version,
            used.file.path().display(),
            used.mode()
        );
        version.set_health(models.iter().map(|open| open.model.health()).collect());
        let owner = signature.owner;
        Ok(Arc::new(OpenVersion {
            response_cache: open_cache(self.responses.as_ref(), &self.config, number, owner),
            name: self.config.name.as_str().into(),
            version: number,
            version_text: number.to_string().into(),
            config: Arc::clone(&self.config),
            signature,
            stats: Arc::clone(&version.stats),
            instances: Some(instances),
            scheduler: Scheduler::Queue(queue),
            backend: Some(Arc::new(used)),
            usage,
            ending: Arc::clone(&self.ending),
            for_begun_sequences: false,
            arena: first.model.arena(),
            input_pool: input_pool(&first.model, gpu),
        }))
    }

    /// Begins to measure what the load takes of the GPUs that it uses in this process. Others have
    /// no context here, which would take memory by itself.
    fn measure_gpus(&self, plans: &[InstancePlan]) -> Result<Vec<LoadMeasure>> {
        if choose_isolation(&self.config, self.backend.isolation)? == Isolation::Process {
            return Ok(Vec::new());
        }
        let on_gpu = plans.iter().filter(|plan| plan.kind == Kind::Gpu);
        let devices: BTreeSet<i32> = on_gpu.map(|plan| plan.device).collect();
        let gpus = devices.into_iter().filter_map(|device| trtserver_device::find_gpu(device).ok());
        Ok(gpus.filter_map(LoadMeasure::begin).collect())
    }

    /// Opens the instances that the open version `open` lacks. Its surplus instances are closed
    /// when the result is completed.
    ///
    /// # Errors
    /// The errors of `open`; the instances are unchanged.
    pub fn resize(
        &self,
        version: &ModelVersion,
        open: &OpenVersion,
        progress: &Arc<LoadProgress>,
    ) -> Result<InstanceResize> {
        let subject = self.subject(version.number);
        let closed = || Error::unavailable(format!("{subject} is closed"));
        let instances = open.instances.as_ref().ok_or_else(closed)?;
        let dir = instances.dir().ok_or_else(closed)?;
        let change = instances.change_to(self.plans());
        let reserved = self.instance_limit.reserve(change.open.len(), &subject)?;
        let admitted = self.admit(&change.open, version.number)?;
        let shared = SharedByInstances {
            version,
            instances,
            usage: &open.usage,
            dir: &dir,
            threads: threads_each(instances.count() + change.open.len() - change.close.len()),
            progress,
        };
        let give_up = |added: &[usize]| added.iter().for_each(|number| instances.remove(*number));
        let opened = self.open_instances(&shared, (change.open, admitted), reserved, give_up)?;
        Ok(InstanceResize { instances: Arc::clone(instances), opened, close: change.close })
    }

    /// Opens instances and waits for them. Returns their numbers. After a failure `give_up` closes
    /// the instances with the given numbers.
    fn open_instances(
        &self,
        shared: &SharedByInstances<'_>,
        (plans, admitted): (Vec<InstancePlan>, Vec<InstanceAdmission>),
        reserved: InstanceReservation,
        give_up: impl Fn(&[usize]),
    ) -> Result<Vec<usize>> {
        let SharedByInstances { version, instances, usage, dir, threads, progress } = shared;
        let count = plans.len();
        progress.expects(count);
        let (opened, results) = channel();
        let (mut numbers, mut failed) = (Vec::new(), None);
        let policy = self.config.model_transaction_policy.as_ref();
        let decoupled = policy.is_some_and(|policy| policy.decoupled);
        for ((plan, limit), reserved) in plans.into_iter().zip(admitted).zip(reserved.split()) {
            // For the log: a model without a file is described by its backend.
            let file = if plan.file.is_empty() { &self.config.backend } else { &plan.file };
            let place = self.machine.describe(plan.device);
            tracing::info!("Creating instance {} on {place} using {file}", plan.name);
            let Some(model) = instances.model(&plan.file) else {
                failed = Some(Error::internal(format!("instance {}: no open model", plan.name)));
                break;
            };
            let (ordinal, alive) = instances.add(plan.clone());
            numbers.push(ordinal);
            if let Some(limit) = &limit {
                instances.queue.limit_instance(ordinal, limit);
            }
            let worker = InstanceWorker {
                load_limit: self.machine.load_limit(plan.device),
                plan,
                ordinal,
                threads: *threads,
                version: version.number,
                model,
                signature: Arc::clone(&instances.signature),
                names: Arc::clone(&instances.names),
                queue: Arc::clone(&instances.queue),
                limit,
                warmup: Arc::clone(&self.warmup),
                warmup_limit: self.warmup_limit,
                cancel: Arc::clone(&self.cancel),
                progress: Some(Arc::clone(progress)),
                stats: Arc::clone(&version.stats),
                one_at_a_time: self.scheduling.one_at_a_time(),
                eager: self.config.optimization.as_ref().is_some_and(|o| o.eager_batching),
                decoupled,
                drain: self.drain,
                batch_numbers: Arc::clone(&self.batch_numbers),
                // A backend may read the model's files at any time.
                open: Arc::new((Arc::clone(usage), reserved, Arc::clone(dir), alive)),
            };
            if let Err(e) = worker.spawn(opened.clone()) {
                failed = Some(e);
                break;
            }
        }
        drop(opened);
        if failed.is_some() {
            give_up(&numbers);
        }
        let mut sizes = Vec::with_capacity(count);
        // Waits for every instance even after a failure: the caller may exit the process, and no
        // instance may be inside the backend then.
        for result in results {
            match result {
                Ok(prepared) => sizes.push(prepared),
                Err(e) => {
                    give_up(&numbers);
                    failed.get_or_insert(e);
                }
            }
        }
        if failed.is_none() && sizes.len() < count {
            give_up(&numbers);
            failed = Some(Error::internal("an instance thread ended before its instance was open"));
        }
        if let Some(e) = failed {
            return Err(e);
        }
        instances.prepared_for(&sizes);
        if load_priority::is_low() {
            instances.end_low_priority();
        }
        Ok(numbers)
    }

    /// A policy without settings changes nothing, which may be a misspelling.
    fn warn_of_policies(&self) {
        let named = self.config.instance_group.iter().map(|group| &*group.host_policy);
        let named: BTreeSet<_> = named.filter(|name| !name.is_empty()).collect();
        for name in named.into_iter().filter(|name| !self.machine.host_policy(name).has_settings())
        {
            tracing::warn!(
                "model '{}': its host policy '{name}' has no settings; --host-policy={name},cpu-cores=… gives it some",
                self.config.name
            );
        }
    }

    fn subject(&self, number: i64) -> String {
        format!("model '{}' version {number}", self.config.name)
    }
}

impl VersionBuilder {
    /// `open` with the configuration and labels of this load; see [`OpenVersion::with_config`].
    pub fn kept(&self, open: &OpenVersion, stats: &Arc<VersionStats>) -> Option<Arc<OpenVersion>> {
        let owner = LedgerOwner::version(&self.config.name, open.version);
        open.with_config(&self.config, self.signature.with_owner(owner), stats)
    }

    /// Whether [`Self::resize`] is possible.
    pub fn can_resize(&self, open: &OpenVersion) -> bool {
        let instances = open.instances.as_ref();
        instances.is_some_and(|of| of.can(&of.change_to(self.plans())))
    }

    /// The model file must be a regular file or a directory where it exists: a backend that opens a
    /// FIFO would hang. It must lie where files of the model may lie.
    pub fn check_file(&self, dir_name: &str, file: &str) -> Result<()> {
        let version_dir = self.dir.path().join(dir_name);
        judge_model_file(&self.config.name, &self.places, &version_dir, file)?;
        let path = version_dir.join(file);
        match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() && !found.is_dir() => Err(Error::invalid(format!(
                "model '{}': '{}' is neither a regular file nor a directory",
                self.config.name,
                path.display()
            ))),
            _ => Ok(()),
        }
    }
}

/// The policy with settings that all instances have.
fn shared_policy(plans: &[InstancePlan]) -> Option<&HostPolicy> {
    let first = &plans.first()?.host_policy;
    let shared = first.has_settings() && plans.iter().all(|plan| plan.host_policy == *first);
    shared.then_some(&**first)
}

/// An instance's part of the rate limiter, if its executions need resources.
type InstanceAdmission = Option<Arc<LimiterMember>>;

/// What all instances of a version share.
struct SharedByInstances<'a> {
    version: &'a ModelVersion,
    instances: &'a OpenInstances,
    usage: &'a Arc<UsageGuard>,
    dir: &'a Arc<ModelDir>,
    /// Number of threads for the framework of each instance.
    threads: u32,
    progress: &'a Arc<LoadProgress>,
}

/// A model file of a version, and the backend's model that was opened from it.
struct OpenFile {
    file: String,
    model: Arc<BackendModel>,
}

/// Pinned memory for large bodies of a model whose instances are all on GPUs, the first on `gpu`.
fn input_pool(model: &BackendModel, gpu: Option<i32>) -> Option<Arc<dyn InputPool>> {
    if model.is_isolated() || !model.backend.facts.takes_gpu_memory() {
        return None;
    }
    let device = trtserver_device::find_gpu(gpu?).ok()?;
    Some(Arc::new(PinnedInputs(device)))
}

/// Threads per instance for the framework: the cores available to this process (cgroup limits
/// included), divided among `instances`.
fn threads_each(instances: usize) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / instances.max(1)).max(1) as u32
}
