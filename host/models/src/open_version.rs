//! An open version of a model: serves its requests until the last reference is dropped.

use super::OpenInstances;
use super::backend_use::BackendUse;
use super::ending_versions::EndingVersions;
use super::lifecycle::UsageGuard;
use std::sync::Arc;
use trtserver_base::arena::Arena;
use trtserver_base::error::Result;
use trtserver_base::stats::{FailureReason, VersionStats};
use trtserver_plugin_host::request_metadata::check_metadata_size;
use trtserver_proto::v2::ModelConfig;
use trtserver_request::buffer::InputPool;
use trtserver_request::{InferRequest, ModelSignature};
use trtserver_response_cache::VersionCache;
use trtserver_scheduler::Scheduler;

/// An open version of a model. The version is closed when the last reference is dropped, unless
/// another value has its queue: a version that a reload left open.
pub struct OpenVersion {
    pub name: Arc<str>,
    pub version: i64,
    /// The version as v2 prints it.
    pub version_text: Arc<str>,
    pub config: Arc<ModelConfig>,
    pub signature: Arc<ModelSignature>,
    pub stats: Arc<VersionStats>,
    pub scheduler: Scheduler,
    /// Requests are looked up here before they are scheduled.
    pub response_cache: Option<Arc<VersionCache>>,
    /// The queue is closed with the last version that has it. `None` for ensembles.
    pub instances: Option<Arc<OpenInstances>>,
    /// `None` for ensembles.
    pub backend: Option<Arc<BackendUse>>,
    /// Counts as one user in the version's usage tracker.
    pub usage: Arc<UsageGuard>,
    /// Replaced versions of the model.
    pub ending: Arc<EndingVersions>,
    /// It was deselected: only requests that continue a sequence are executed.
    pub for_begun_sequences: bool,
    /// Inputs received into this arena reach an isolated model without a copy.
    pub arena: Option<Arc<Arena>>,
    /// Memory for large bodies, if all instances are on GPUs in this process.
    pub input_pool: Option<Arc<dyn InputPool>>,
}

impl OpenVersion {
    /// Queues a checked request. The request gets a response in every case.
    pub fn submit(&self, request: InferRequest) {
        // Checked before the request is queued, so that a refusal does not change the state of its
        // sequence.
        if self.arena.is_some()
            && let Err(e) = check_metadata_size(&request)
        {
            let _ = request.responder.fail(e, FailureReason::Refused);
            return;
        }
        self.schedule(request);
    }

    /// Queues a request, unless the response cache answers it.
    pub(super) fn schedule(&self, request: InferRequest) {
        match &self.response_cache {
            None => self.scheduler.submit(request),
            Some(cache) => cache.submit(request, &self.scheduler),
        }
    }

    /// Submitting a request with so many `bytes` of inputs takes long, because they are hashed.
    pub fn hashes_long(&self, bytes: impl FnOnce() -> usize) -> bool {
        self.response_cache.as_ref().is_some_and(|cache| cache.takes_long(bytes()))
    }

    /// A request to a decoupled model gets any number of responses.
    pub fn decoupled(&self) -> bool {
        self.config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled)
    }

    /// This version with the configuration, the labels and the counters of a reload that leaves it
    /// open. `None` for ensembles.
    pub(super) fn with_config(
        &self,
        config: &Arc<ModelConfig>,
        signature: Arc<ModelSignature>,
        stats: &Arc<VersionStats>,
    ) -> Option<Arc<Self>> {
        let (config, stats) = (Arc::clone(config), Arc::clone(stats));
        Some(Arc::new(Self { config, signature, stats, ..self.share()? }))
    }

    /// This version for requests that continue a sequence, and no others.
    pub(super) fn for_begun_sequences(&self) -> Option<Arc<Self>> {
        Some(Arc::new(Self { for_begun_sequences: true, ..self.share()? }))
    }

    /// A value with the same instances, queue and counters. `None` for ensembles.
    fn share(&self) -> Option<Self> {
        let Scheduler::Queue(queue) = &self.scheduler else { return None };
        Some(self.with_scheduler(Scheduler::Queue(Arc::clone(queue))))
    }

    /// For an ensemble: a copy that holds references to the open versions of its steps. Other
    /// models are returned as they are.
    ///
    /// # Errors
    /// A model of a step is not served.
    pub(super) fn with_pinned_steps(self: Arc<Self>) -> Result<Arc<Self>> {
        let Scheduler::Ensemble(ensemble) = &self.scheduler else { return Ok(self) };
        Ok(Arc::new(self.with_scheduler(Scheduler::Ensemble(ensemble.pinned()?))))
    }

    fn with_scheduler(&self, scheduler: Scheduler) -> Self {
        Self {
            name: Arc::clone(&self.name),
            version: self.version,
            version_text: Arc::clone(&self.version_text),
            config: Arc::clone(&self.config),
            signature: Arc::clone(&self.signature),
            stats: Arc::clone(&self.stats),
            scheduler,
            response_cache: self.response_cache.clone(),
            instances: self.instances.clone(),
            backend: self.backend.clone(),
            usage: Arc::clone(&self.usage),
            ending: Arc::clone(&self.ending),
            for_begun_sequences: self.for_begun_sequences,
            arena: self.arena.clone(),
            input_pool: self.input_pool.clone(),
        }
    }
}
