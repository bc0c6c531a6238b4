//! Opens one version: backend model, instances and scheduler.

use super::super::backend_use::BackendUse;
use super::super::ending_versions::EndingVersions;
use super::super::open_instances::InstanceResize;
use super::super::response_cache::open_cache;
use super::super::scheduling::SchedulingPlan;
use super::super::{OpenInstances, OpenResources, OpenVersion};
use super::ModelVersion;
use super::builder_files::{OpenFile, input_pool, shared_policy};
use super::builder_instances::{SharedByInstances, threads_each};
use super::refusal::show_origin;
use crate::instance::group::{InstancePlan, plan_instances};
use crate::instance::limit::InstanceLimit;
use crate::instance::load_cancel::LoadCancel;
use crate::instance::load_progress::LoadProgress;
use crate::instance::priority::open_as_instances;
use crate::instance::warmup::WarmupSample;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerOwner;
use trtserver_base::stats::VersionStats;
use trtserver_base::timer::DeadlineTimer;
use trtserver_device::LoadMeasure;
use trtserver_model_config::MachineFacts;
use trtserver_model_files::FilePlaces;
use trtserver_model_store::ModelDir;
use trtserver_plugin_host::backend::{CompletedConfig, PluginBackend};
use trtserver_plugin_host::isolation::{Isolation, choose_isolation};
use trtserver_plugin_host::load_priority;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_request::ModelSignature;
use trtserver_response_cache::ResponseStore;
use trtserver_scheduler::limiter::{InstanceLimits, RateLimiter};
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
    /// Set if requests that would wait too long are refused.
    pub wait_target: Option<Duration>,
}

impl VersionBuilder {
    pub fn plans(&self) -> Vec<InstancePlan> {
        let mut plans = plan_instances(&self.config, self.max_priority_in_use, &self.machine);
        if self.limiter.is_none() {
            plans.iter_mut().for_each(|plan| plan.limits = InstanceLimits::default());
        }
        plans
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
        let queue = RequestQueue::with_wait_target(
            policy,
            &signature,
            count,
            in_order,
            self.timer,
            self.wait_target,
        );
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
}
