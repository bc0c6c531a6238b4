//! Ensembles: a request that goes through several models, tensor by tensor, without leaving the server.
//!
//! A tensor passes from step to step by reference. A step is submitted the moment that all it reads is there, by
//! whoever brought the last of it: the front end's thread for the first steps, an instance's thread for the others.

pub mod graph; // which step reads and writes what
mod pool; // the tensors of one request, and which steps can run
mod run; // one request on its way through the steps

pub use graph::{Graph, StepPlan};

use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::request::{InferRequest, Sequence, Signature};
use crate::stats::{FailureReason, VersionStats};
use std::sync::Arc;

/// A model that serves as a step. Alive, with all that it needs, while somebody holds it.
pub trait StepModel: Send + Sync {
    fn signature(&self) -> &Arc<Signature>;
    fn stats(&self) -> &Arc<VersionStats>;
    /// Whether a request of `sequence` would go on with one that has not ended.
    fn has_sequence(&self, sequence: &Sequence) -> bool;
    /// Queues a checked request. Its reply is answered whatever happens, at the earliest before this returns.
    fn submit(&self, request: InferRequest);
}

/// Where steps find their models.
pub trait StepModels: Send + Sync {
    /// What serves `version` of `model` now; without a version the highest.
    fn find(&self, model: &str, version: Option<i64>) -> Result<Arc<dyn StepModel>>;
}

/// What an ensemble does with its requests.
pub struct Ensemble {
    graph: Arc<Graph>,
    steps: Steps,
}

enum Steps {
    /// Looked up for each request: what serves may change.
    Found(Arc<dyn StepModels>),
    /// Held: they serve as long as this does, loaded or not.
    Pinned(Vec<Arc<dyn StepModel>>),
}

impl Ensemble {
    pub fn new(graph: Graph, models: Arc<dyn StepModels>) -> Self {
        Self { graph: Arc::new(graph), steps: Steps::Found(models) }
    }

    /// The same with the models that serve its steps now: for a request that must get through although models are
    /// unloaded meanwhile.
    ///
    /// # Errors
    /// A step's model is not served.
    pub fn pinned(&self) -> Result<Self> {
        Ok(Self { graph: Arc::clone(&self.graph), steps: Steps::Pinned(self.models()?) })
    }

    fn models(&self) -> Result<Vec<Arc<dyn StepModel>>> {
        match &self.steps {
            Steps::Found(models) => {
                let find = |s: &graph::Step| models.find(&s.model, s.version);
                let found: Result<_> = self.graph.steps.iter().map(find).collect();
                found.map_err(|e| inside(&self.graph.name, e))
            }
            Steps::Pinned(models) => Ok(models.clone()),
        }
    }

    /// Whether a request of `sequence` would go on with one that a step's model knows.
    pub fn has_sequence(&self, sequence: &Sequence) -> bool {
        self.models().is_ok_and(|models| models.iter().any(|model| model.has_sequence(sequence)))
    }

    /// Sends a checked request through the steps. The reply is answered whatever happens.
    pub fn submit(&self, request: InferRequest) {
        request.responder.queued(now_ns());
        match self.models() {
            Ok(models) => run::Run::start(Arc::clone(&self.graph), models, request),
            Err(e) => drop(request.responder.fail(e, FailureReason::Other)),
        }
    }
}

/// What went wrong inside an ensemble says inside which.
fn inside(ensemble: &str, e: Error) -> Error {
    Error::new(e.code, format!("in ensemble '{ensemble}', {}", e.message))
}

#[cfg(test)]
mod testing;
#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
