//! Ensembles: a request is executed by several models, step by step, inside the server.
//!
//! Tensors pass from step to step by reference, also in GPU memory if all models that read them
//! have instances on GPUs, and also between the steps of nested ensembles. A step is submitted as
//! soon as all its inputs exist: by the thread of the frontend for the first steps, by the thread
//! that delivers the last missing tensor for the others.

pub mod graph;
mod inflight;
mod run;
mod step_model;
mod step_responses;
mod tensors;

pub use graph::{EnsembleGraph, StepPlan};
pub use step_model::{StepModel, StepModels};

use inflight::InflightLimit;
use std::sync::Arc;
use step_model::in_ensemble;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Result;
use trtserver_base::stats::FailureReason;
use trtserver_request::{InferRequest, RequestSequence};

/// A served ensemble.
#[derive(Clone)]
pub struct Ensemble {
    graph: Arc<EnsembleGraph>,
    steps: StepLookup,
    limit: Option<Arc<InflightLimit>>,
}

#[derive(Clone)]
enum StepLookup {
    /// Looked up for each request, since models may be replaced.
    LookedUp(Arc<dyn StepModels>),
    /// They serve as long as this value exists, even if they are unloaded.
    Pinned(Vec<Arc<dyn StepModel>>),
}

impl Ensemble {
    /// `max_inflight`: requests of each step at a time, 0 = no limit.
    pub fn new(graph: EnsembleGraph, models: Arc<dyn StepModels>, max_inflight: usize) -> Self {
        let limit = InflightLimit::new(max_inflight, graph.steps.len());
        Self { graph: Arc::new(graph), steps: StepLookup::LookedUp(models), limit }
    }

    /// The same with the models that serve its steps now, for a request that must complete although
    /// models are unloaded meanwhile.
    ///
    /// # Errors
    /// A step's model is not served.
    pub fn pinned(&self) -> Result<Self> {
        let steps = StepLookup::Pinned(self.models()?);
        Ok(Self { graph: Arc::clone(&self.graph), steps, limit: self.limit.clone() })
    }

    fn models(&self) -> Result<Vec<Arc<dyn StepModel>>> {
        match &self.steps {
            StepLookup::LookedUp(models) => {
                let find = |s: &graph::EnsembleStep| models.find(&s.model, s.version);
                let found: Result<_> = self.graph.steps.iter().map(find).collect();
                found.map_err(|e| in_ensemble(&self.graph.name, e))
            }
            StepLookup::Pinned(models) => Ok(models.clone()),
        }
    }

    /// See [`StepModel::writes_on_gpu`].
    pub fn writes_on_gpu(&self, output: &str) -> bool {
        let Some(index) = self.graph.signature.output(output) else { return false };
        let tensor = self.graph.outputs[index];
        let Some(step) = self.graph.writer[tensor] else { return false };
        let mut writes = self.graph.steps[step].writes.iter();
        let write = writes.find(|(_, written)| *written == tensor);
        self.with_models(|models| write.is_some_and(|(name, _)| models[step].writes_on_gpu(name)))
    }

    /// See [`StepModel::reads_on_gpu`].
    pub fn reads_on_gpu(&self, input: &str) -> bool {
        let Some(index) = self.graph.signature.input(input) else { return false };
        let tensor = self.graph.inputs[index];
        let is_output = self.graph.outputs.contains(&tensor);
        self.with_models(|models| !is_output && self.graph.is_read_on_gpus(tensor, models))
    }

    /// What `ask` returns of the models of the steps; false if one is not served.
    fn with_models(&self, ask: impl FnOnce(&[Arc<dyn StepModel>]) -> bool) -> bool {
        match &self.steps {
            StepLookup::LookedUp(_) => self.models().is_ok_and(|models| ask(&models)),
            StepLookup::Pinned(models) => ask(models),
        }
    }

    /// Whether `sequence` has begun and not ended in a step's model.
    pub fn has_sequence(&self, sequence: &RequestSequence) -> bool {
        self.with_models(|models| models.iter().any(|model| model.has_sequence(sequence)))
    }

    /// Executes a checked request. It gets its final response whatever happens.
    pub fn submit(&self, request: InferRequest) {
        request.responder.queued(now_ns());
        match self.models() {
            Ok(mut models) => {
                for (model, step) in models.iter_mut().zip(&self.graph.steps) {
                    let exact = step.version.is_some_and(|version| version > 0);
                    if let Some(began) = model.begun_on(&request.sequence, exact) {
                        *model = began;
                    }
                }
                let (graph, limit) = (Arc::clone(&self.graph), self.limit.clone());
                run::EnsembleRun::start(graph, models, limit, request);
            }
            Err(e) => drop(request.responder.fail(e, FailureReason::Other)),
        }
    }
}

#[cfg(test)]
mod placed_outputs_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
