//! Opens the versions of an ensemble.

use super::super::response_cache::{is_enabled, open_cache, uncacheable_step};
use super::super::{ModelTable, ModelVersion, OpenVersion};
use super::check_steps::{self, StepTensors};
use super::{EnsembleDependencies, max_inflight, step_plans};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerOwner;
use trtserver_proto::v2::{ModelConfig, ModelTransactionPolicy};
use trtserver_request::ModelSignature;
use trtserver_scheduler::Scheduler;
use trtserver_scheduler::ensemble::{Ensemble, EnsembleGraph, StepModels};

/// Everything the versions of one ensemble are opened with.
pub struct EnsembleBuilder {
    config: Arc<ModelConfig>,
    signature: Arc<ModelSignature>,
    pub dependencies: Arc<EnsembleDependencies>,
}

impl EnsembleBuilder {
    /// The models of the steps are looked up in `models`.
    pub fn new(
        id: &str,
        config: &Arc<ModelConfig>,
        signature: Arc<ModelSignature>,
        models: &Arc<ModelTable>,
    ) -> Self {
        let dependencies = Arc::new(EnsembleDependencies::new(id, step_plans(config), models));
        Self { config: Arc::clone(config), signature, dependencies }
    }

    /// The models of its steps, as the configuration names them.
    pub fn step_models(&self) -> Vec<String> {
        self.dependencies.steps.iter().map(|step| step.model.clone()).collect()
    }

    /// The ensemble's own tensors.
    pub fn signature(&self) -> &Arc<ModelSignature> {
        &self.signature
    }

    /// Checks the ensemble against the models of its steps, of which `model` returns the tensors
    /// and whether it is decoupled; models without them are not checked.
    ///
    /// # Errors
    /// A tensor does not match.
    pub fn check_steps(
        &self,
        model: impl Fn(&str) -> Option<(Arc<ModelSignature>, bool)>,
    ) -> Result<()> {
        let steps = self.dependencies.steps.iter().map(|plan| {
            let (signature, decoupled) = model(&plan.model)?;
            Some(StepTensors { plan, signature, decoupled })
        });
        let Some(steps) = steps.collect::<Option<Vec<_>>>() else { return Ok(()) };
        check_steps::check_ensemble_steps(&self.signature, &steps)?;
        self.graph(&self.signature, &steps).map(drop)
    }

    fn graph(
        &self,
        signature: &Arc<ModelSignature>,
        steps: &[StepTensors<'_>],
    ) -> Result<EnsembleGraph> {
        let decoupled: Vec<bool> = steps.iter().map(|step| step.decoupled).collect();
        if is_enabled(&self.config)
            && let Some(step) = steps.iter().find(|step| step.decoupled)
        {
            let what = "'decoupled' transaction policy";
            let refusal = uncacheable_step(&self.config.name, &step.plan.model, what);
            return Err(Error::invalid(refusal));
        }
        EnsembleGraph::new(signature, &self.dependencies.steps, &decoupled)
    }

    /// Refuses a response cache if a step keeps sequences.
    fn check_cacheable(&self) -> Result<()> {
        if !is_enabled(&self.config) {
            return Ok(());
        }
        for plan in &self.dependencies.steps {
            if self.dependencies.find(plan)?.scheduler.is_sequence() {
                let what = "sequence batching scheduler";
                let refusal = uncacheable_step(&self.config.name, &plan.model, what);
                return Err(Error::invalid(refusal));
            }
        }
        Ok(())
    }

    /// The configuration as clients see it: an ensemble with a decoupled step is decoupled.
    fn config_with_policy(&self, graph: &EnsembleGraph) -> Arc<ModelConfig> {
        let mut config = Arc::clone(&self.config);
        if graph.is_decoupled() {
            let policy = ModelTransactionPolicy { decoupled: true };
            Arc::make_mut(&mut config).model_transaction_policy = Some(policy);
        }
        config
    }

    /// Opens `version`. The models of the steps must be served.
    ///
    /// # Errors
    /// A model of a step is not served, or its tensors do not match those of the ensemble.
    pub fn open(&self, version: &ModelVersion) -> Result<Arc<OpenVersion>> {
        let number = version.number;
        if let Some(reason) = self.dependencies.unmet() {
            return Err(Error::invalid(reason));
        }
        let plans = &self.dependencies.steps;
        let find = |plan| {
            let served = self.dependencies.find(plan)?;
            let signature = Arc::clone(&served.signature);
            Ok(StepTensors { plan, signature, decoupled: served.decoupled() })
        };
        let steps = plans.iter().map(find).collect::<Result<Vec<_>>>()?;
        check_steps::check_ensemble_steps(&self.signature, &steps)?;
        let labelled = check_steps::with_labels(&self.signature, &steps);
        let signature = labelled.with_owner(LedgerOwner::version(&self.config.name, number));
        let graph = self.graph(&signature, &steps)?;
        self.check_cacheable()?;
        let store = self.dependencies.response_store();
        let response_cache = open_cache(store.as_ref(), &self.config, number, signature.owner);
        version.stats.set_decoupled(graph.is_decoupled());
        let config = self.config_with_policy(&graph);
        let max_inflight = max_inflight(&self.config);
        let models = Arc::clone(&self.dependencies) as Arc<dyn StepModels>;
        Ok(Arc::new(OpenVersion {
            name: self.config.name.as_str().into(),
            version: number,
            version_text: number.to_string().into(),
            config,
            signature,
            stats: Arc::clone(&version.stats),
            usage: version.start_use(),
            scheduler: Scheduler::Ensemble(Ensemble::new(graph, models, max_inflight)),
            response_cache,
            instances: None,
            backend: None,
            ending: Arc::default(),
            for_begun_sequences: false,
            arena: None,
            input_pool: None,
        }))
    }
}
