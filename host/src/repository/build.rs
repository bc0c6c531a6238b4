//! One version: plugin model, instances and scheduler built into what serves requests.

use super::backends::BackendUse;
use super::schedule::Schedule;
use super::{Served, Version};
use crate::error::{Error, Result};
use crate::instance::group::{InstancePlan, plans};
use crate::instance::warmup::WarmupSample;
use crate::instance::worker::Worker;
use crate::plugin::backend::Backend;
use crate::plugin::{ModelFacts, TensorNames};
use crate::request::Signature;
use crate::scheduler::{Queue, Scheduler};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use trtserver_proto::v2::ModelConfig;

/// A model whose configuration is settled; its versions can be built.
pub struct Prepared {
    pub dir: PathBuf,
    pub config: Arc<ModelConfig>,
    pub signature: Arc<Signature>,
    /// A model of the server has the highest priority.
    pub max_asked: bool,
    pub schedule: Schedule,
    pub backend: Arc<Backend>,
    /// How long instances wait for answers that plugins owe when they close.
    pub drain: Duration,
    /// What every instance runs first.
    pub warmup: Arc<[WarmupSample]>,
}

impl Prepared {
    pub fn plans(&self) -> Vec<InstancePlan> {
        plans(&self.config, self.max_asked)
    }

    /// Opens `version`, which lies in the directory `entry`, with all its instances.
    ///
    /// # Errors
    /// What the backend said, or what is missing; nothing stays open.
    pub fn open(&self, version: &Version, entry: &str) -> Result<Arc<Served>> {
        let (number, stats, users) = (version.number, &version.stats, version.open());
        let plans = self.plans();
        let threads = threads_each(plans.len());
        let facts = ModelFacts {
            name: &self.config.name,
            version: number,
            dir: &self.dir,
            version_dir: &self.dir.join(entry),
            file: &self.config.default_model_filename,
            config: &self.config,
            signature: &self.signature,
            n_instances: plans.len() as u32,
            threads,
        };
        let model = self.backend.open_model(&facts)?;
        let count = plans.len();
        let in_order = self.schedule.in_order;
        let queue = Queue::new(self.schedule.policy(count), &self.signature, count, in_order);
        let names = Arc::new(TensorNames::new(&self.signature));
        let (opened, results) = channel();
        let mut failed = None;
        for (ordinal, plan) in plans.into_iter().enumerate() {
            // What has no file is named by its backend.
            let file = match &*self.config.default_model_filename {
                "" => &self.config.backend,
                file => file,
            };
            tracing::info!(
                "Creating instance {} on {} using {file}",
                plan.name,
                if plan.device < 0 { "CPU".to_owned() } else { format!("GPU {}", plan.device) }
            );
            let worker = Worker {
                plan,
                ordinal,
                threads,
                version: number,
                model: Arc::clone(&model),
                signature: Arc::clone(&self.signature),
                names: Arc::clone(&names),
                queue: Arc::clone(&queue),
                warmup: Arc::clone(&self.warmup),
                stats: Arc::clone(stats),
                one_at_a_time: self.schedule.one_at_a_time(),
                drain: self.drain,
                open: Arc::clone(&users) as Arc<_>,
            };
            if let Err(e) = worker.spawn(opened.clone()) {
                failed = Some(e);
                break;
            }
        }
        drop(opened);
        if failed.is_some() {
            queue.close();
        }
        let mut open = 0;
        // All are waited for: whoever is told of a failure may end the process, which none should be busy in.
        for result in results {
            match result {
                Ok(()) => open += 1,
                Err(e) => {
                    queue.close();
                    failed.get_or_insert(e);
                }
            }
        }
        if failed.is_none() && open < count {
            queue.close();
            failed = Some(Error::internal("an instance thread ended while it opened"));
        }
        if let Some(e) = failed {
            return Err(e);
        }
        let used = BackendUse::of(&model);
        tracing::info!(
            "model '{}' version {number} uses backend '{}' {} from {} ({})",
            self.config.name,
            used.facts.name,
            used.facts.version,
            used.file.display(),
            used.place()
        );
        version.watch(model.health());
        Ok(Arc::new(Served {
            name: self.config.name.as_str().into(),
            version: number,
            version_text: number.to_string().into(),
            config: Arc::clone(&self.config),
            signature: Arc::clone(&self.signature),
            stats: Arc::clone(stats),
            scheduler: Scheduler::Queue(queue),
            backend: Some(Arc::new(used)),
            open: users,
            arena: model.arena(),
        }))
    }
}

/// Threads that each of `instances` may give its framework: the cores that this process may use
/// (cgroups counted), shared out.
fn threads_each(instances: usize) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / instances.max(1)).max(1) as u32
}

impl Drop for Served {
    /// The last user is gone: the instances finish what is queued and close.
    fn drop(&mut self) {
        self.scheduler.close();
    }
}
