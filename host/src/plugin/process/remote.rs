//! The host's side of a model in another process.

use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::plugin::backend::{Backend, Facts};
use crate::plugin::{InstanceFacts, ModelFacts, Patch};
use crate::request::InferRequest;
use std::path::Path;
use std::sync::Arc;

fn not_there() -> Error {
    Error::unsupported("process isolation is not offered yet; set isolation=none")
}

/// Facts of a library that must not be loaded into this process.
pub fn describe(_path: &Path) -> Result<Facts> {
    Err(not_there())
}

/// `model_complete` in a process that ends afterwards.
pub fn complete(_backend: &Backend, _facts: &ModelFacts<'_>) -> Result<Option<Patch>> {
    Err(not_there())
}

/// A model version in a process of its own.
pub struct RemoteModel {
    inputs: Arc<Arena>,
}

impl RemoteModel {
    pub fn open(_backend: &Arc<Backend>, _facts: &ModelFacts<'_>) -> Result<Arc<Self>> {
        Err(not_there())
    }

    /// Where inputs are best received.
    pub fn inputs(&self) -> Arc<Arena> {
        Arc::clone(&self.inputs)
    }
}

/// An instance of it.
pub struct RemoteInstance {
    _model: Arc<RemoteModel>,
}

impl RemoteInstance {
    pub fn open(_model: &Arc<RemoteModel>, _facts: &InstanceFacts<'_>) -> Result<Self> {
        Err(not_there())
    }

    /// Hands the requests over as batch `id`; each is answered, now or later, whatever happens.
    pub fn execute(&mut self, _id: u64, requests: &mut Vec<InferRequest>) {
        for request in requests.drain(..) {
            let _ = request.reply.end(Err(not_there()));
        }
    }
}
