//! Opens the instances of a version: admits them to the rate limiter, starts their threads, and
//! waits for them.

use super::super::OpenInstances;
use super::version_builder::VersionBuilder;
use super::{ModelVersion, UsageGuard};
use crate::instance::group::InstancePlan;
use crate::instance::limit::InstanceReservation;
use crate::instance::load_progress::LoadProgress;
use crate::instance::worker::InstanceWorker;
use std::sync::Arc;
use std::sync::mpsc::channel;
use trtserver_base::error::{Error, Result};
use trtserver_model_store::ModelDir;
use trtserver_plugin_host::load_priority;
use trtserver_scheduler::limiter::{LimitedName, LimiterMember};

/// An instance's part of the rate limiter, if its executions need resources.
pub(super) type InstanceAdmission = Option<Arc<LimiterMember>>;

/// What all instances of a version share.
pub(super) struct SharedByInstances<'a> {
    pub version: &'a ModelVersion,
    pub instances: &'a OpenInstances,
    pub usage: &'a Arc<UsageGuard>,
    pub dir: &'a Arc<ModelDir>,
    /// Number of threads for the framework of each instance.
    pub threads: u32,
    pub progress: &'a Arc<LoadProgress>,
}

impl VersionBuilder {
    /// Admits instances of version `number` to the rate limiter; `None` for each without a demand.
    pub(super) fn admit(
        &self,
        plans: &[InstancePlan],
        number: i64,
    ) -> Result<Vec<InstanceAdmission>> {
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

    /// Opens instances and waits for them. Returns their numbers. After a failure `give_up` closes
    /// the instances with the given numbers.
    pub(super) fn open_instances(
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
}

/// Threads per instance for the framework: the cores available to this process (cgroup limits
/// included), divided among `instances`.
pub(super) fn threads_each(instances: usize) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / instances.max(1)).max(1) as u32
}
