//! The models of an ensemble's steps, as it needs them.

use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::VersionStats;
use trtserver_request::{InferRequest, ModelSignature, RequestSequence};

/// A model that executes a step. It stays open while it is referenced.
pub trait StepModel: Send + Sync {
    fn signature(&self) -> &Arc<ModelSignature>;
    fn stats(&self) -> &Arc<VersionStats>;
    /// The number of the version, for traces.
    fn version(&self) -> i64;
    /// Output `name` can be left in GPU memory: an instance is on a GPU in this process.
    fn writes_on_gpu(&self, _name: &str) -> bool {
        false
    }
    /// Input `name` may be given in GPU memory, since an instance takes it there. An instance that
    /// does not copies it.
    fn reads_on_gpu(&self, _name: &str) -> bool {
        false
    }
    /// Whether `sequence` has begun and not ended.
    fn has_sequence(&self, sequence: &RequestSequence) -> bool;
    /// The replaced version of the model that executes `sequence`, if it began there; `exact`: the
    /// step names the version.
    fn begun_on(&self, _sequence: &RequestSequence, _exact: bool) -> Option<Arc<dyn StepModel>> {
        None
    }
    /// Queues a checked request. It gets its final response whatever happens, possibly before this
    /// returns.
    fn submit(&self, request: InferRequest);
}

/// Finds the models of steps.
pub trait StepModels: Send + Sync {
    /// The model that serves `version` now; without a version the highest.
    fn find(&self, model: &str, version: Option<i64>) -> Result<Arc<dyn StepModel>>;
}

/// Names the ensemble in an error of one of its steps.
pub fn in_ensemble(ensemble: &str, e: Error) -> Error {
    let message = format!("in ensemble '{ensemble}', {}", e.message);
    Error { message, model_broken: false, ..e }
}
