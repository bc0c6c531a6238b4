//! Ensembles in the repository: load order, checks against the models of the steps, and opening.

mod builder;
mod check_steps;
mod dependencies;
mod load_order;

pub use builder::EnsembleBuilder;
pub use dependencies::EnsembleDependencies;
pub use load_order::{EnsembleSteps, load_order};

use trtserver_model_config::model_id;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_ensembling::Step;
use trtserver_scheduler::ensemble::StepPlan;

/// Whether a step names the namespace of its model.
pub fn names_namespace(config: &ModelConfig) -> bool {
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &config.scheduling_choice else {
        return false;
    };
    ensemble.step.iter().any(|step| !step.model_namespace.is_empty())
}

/// The steps of an ensemble's configuration; empty for other models.
pub fn step_plans(config: &ModelConfig) -> Vec<StepPlan> {
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &config.scheduling_choice else {
        return Vec::new();
    };
    let step = |s: &Step| StepPlan {
        model: match s.model_namespace.as_str() {
            "" => s.model_name.clone(),
            namespace => model_id::join_model_id(namespace, &s.model_name),
        },
        version: (s.model_version >= 0).then_some(s.model_version),
        inputs: s.input_map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        outputs: s.output_map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
    };
    ensemble.step.iter().map(step).collect()
}

/// `max_inflight_requests` of an ensemble's configuration.
fn max_inflight(config: &ModelConfig) -> usize {
    match &config.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensemble)) => {
            usize::try_from(ensemble.max_inflight_requests).unwrap_or(usize::MAX)
        }
        _ => 0,
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
