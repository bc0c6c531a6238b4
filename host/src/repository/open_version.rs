//! An open version of a model: serves its requests until the last reference is dropped.

use super::backend_use::BackendUse;
use super::lifecycle::UsageGuard;
use crate::arena::Arena;
use crate::error::Result;
use crate::plugin::isolated::check_metadata_size;
use crate::request::{InferRequest, Signature};
use crate::scheduler::Scheduler;
use crate::stats::{FailureReason, VersionStats};
use std::sync::Arc;
use trtserver_proto::v2::ModelConfig;

/// An open version of a model. The version is closed when the last reference is dropped.
pub struct OpenVersion {
    pub name: Arc<str>,
    pub version: i64,
    /// The version as v2 prints it.
    pub version_text: Arc<str>,
    pub config: Arc<ModelConfig>,
    pub signature: Arc<Signature>,
    pub stats: Arc<VersionStats>,
    pub scheduler: Scheduler,
    /// `None` for ensembles.
    pub backend: Option<Arc<BackendUse>>,
    /// Counts as one user in the version's usage tracker.
    pub usage: Arc<UsageGuard>,
    /// Inputs received into this arena reach an isolated model without a copy.
    pub arena: Option<Arc<Arena>>,
}

impl OpenVersion {
    /// Queues a checked request. The request gets a response in every case.
    pub fn submit(&self, request: InferRequest) {
        // Checked before the request is queued, so that a refusal does not change the state of its sequence.
        if self.arena.is_some()
            && let Err(e) = check_metadata_size(&request)
        {
            let _ = request.responder.fail(e, FailureReason::Other);
            return;
        }
        self.scheduler.submit(request);
    }

    /// A request to a decoupled model gets any number of responses.
    pub fn decoupled(&self) -> bool {
        self.config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled)
    }

    /// For an ensemble: a copy that holds references to the open versions of its steps. Other models are returned as they are.
    ///
    /// # Errors
    /// A model of a step is not served.
    pub(super) fn with_pinned_steps(self: Arc<Self>) -> Result<Arc<Self>> {
        let Scheduler::Ensemble(ensemble) = &self.scheduler else { return Ok(self) };
        Ok(Arc::new(Self {
            name: Arc::clone(&self.name),
            version: self.version,
            version_text: Arc::clone(&self.version_text),
            config: Arc::clone(&self.config),
            signature: Arc::clone(&self.signature),
            stats: Arc::clone(&self.stats),
            scheduler: Scheduler::Ensemble(ensemble.pinned()?),
            backend: None,
            usage: Arc::clone(&self.usage),
            arena: None,
        }))
    }
}

impl Drop for OpenVersion {
    /// Instances execute what is queued, then close.
    fn drop(&mut self) {
        self.scheduler.close();
    }
}
