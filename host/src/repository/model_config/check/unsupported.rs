//! What a configuration may ask for and this server does not do yet, in one table. Whoever builds
//! the feature deletes its row.

use trtserver_proto::v2::model_config::SchedulingChoice::{EnsembleScheduling, SequenceBatching};
use trtserver_proto::v2::{ModelConfig, ModelEnsembling, ModelSequenceBatching};

use super::super::ConfigError;

/// What happens to a model that asks.
enum Answer {
    /// The model would answer wrongly, or not as its clients expect.
    Refuse,
    /// It answers correctly all the same.
    Warn,
}
use Answer::{Refuse, Warn};

struct Row {
    /// As the configuration spells it.
    field: &'static str,
    asked: fn(&ModelConfig) -> bool,
    answer: Answer,
    /// The consequence, for the operator.
    so: &'static str,
}

/// The sequence batching that a configuration asks for.
fn sequence(config: &ModelConfig) -> Option<&ModelSequenceBatching> {
    match &config.scheduling_choice {
        Some(SequenceBatching(sequence)) => Some(sequence),
        _ => None,
    }
}

/// The steps that an ensemble's configuration asks for.
fn ensemble(config: &ModelConfig) -> Option<&ModelEnsembling> {
    match &config.scheduling_choice {
        Some(EnsembleScheduling(ensemble)) => Some(ensemble),
        _ => None,
    }
}

const TABLE: &[Row] = &[
    Row {
        field: "sequence_batching.iterative_sequence",
        asked: |c| sequence(c).is_some_and(|s| s.iterative_sequence),
        answer: Refuse,
        so: "a request would be executed once, not until the model says that its sequence has ended",
    },
    Row {
        field: "sequence_batching.state.use_growable_memory",
        asked: |c| sequence(c).is_some_and(|s| s.state.iter().any(|s| s.use_growable_memory)),
        answer: Refuse,
        so: "it needs CUDA virtual memory, and states are kept in the host's memory",
    },
    Row {
        field: "ensemble_scheduling.max_inflight_requests",
        asked: |c| ensemble(c).is_some_and(|e| e.max_inflight_requests > 0),
        answer: Warn,
        so: "a step is submitted as soon as its tensors are there",
    },
    Row {
        field: "ensemble_scheduling.step.model_namespace",
        asked: |c| {
            ensemble(c).is_some_and(|e| e.step.iter().any(|s| !s.model_namespace.is_empty()))
        },
        answer: Refuse,
        so: "models of one name cannot be told apart",
    },
    Row {
        field: "response_cache",
        asked: |c| c.response_cache.as_ref().is_some_and(|cache| cache.enable),
        answer: Refuse,
        so: "answers are not cached",
    },
    Row {
        field: "model_transaction_policy.decoupled",
        asked: |c| {
            ensemble(c).is_some()
                && c.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled)
        },
        answer: Refuse,
        so: "steps answer exactly once, and so does their ensemble",
    },
    Row {
        field: "batch_input",
        asked: |c| !c.batch_input.is_empty(),
        answer: Refuse,
        so: "the model would miss an input",
    },
    Row {
        field: "batch_output",
        asked: |c| !c.batch_output.is_empty(),
        answer: Refuse,
        so: "outputs would not be cut back to their requests",
    },
    Row {
        field: "model_repository_agents",
        asked: |c| c.model_repository_agents.as_ref().is_some_and(|a| !a.agents.is_empty()),
        answer: Refuse,
        so: "the model's files would not be checked or transformed before they are used",
    },
    Row {
        field: "instance_group.passive",
        asked: |c| c.instance_group.iter().any(|group| group.passive),
        answer: Refuse,
        so: "the instance would be sent requests",
    },
    Row {
        field: "instance_group.secondary_devices",
        asked: |c| c.instance_group.iter().any(|group| !group.secondary_devices.is_empty()),
        answer: Refuse,
        so: "instances use one device",
    },
    Row {
        field: "instance_group.rate_limiter",
        asked: |c| c.instance_group.iter().any(|group| group.rate_limiter.is_some()),
        answer: Warn,
        so: "instances run as soon as they are free",
    },
    Row {
        field: "instance_group.host_policy",
        asked: |c| c.instance_group.iter().any(|group| !group.host_policy.is_empty()),
        answer: Warn,
        so: "instances run on any core",
    },
    Row {
        field: "runtime",
        asked: |c| !c.runtime.is_empty(),
        answer: Warn,
        so: "the backend's library is found by the backend's name",
    },
    Row {
        field: "model_metrics",
        asked: |c| c.model_metrics.as_ref().is_some_and(|m| !m.metric_control.is_empty()),
        answer: Warn,
        so: "histograms are not reported",
    },
];

/// Refuses at the first row that demands it, else returns a warning for each row that applies.
pub(super) fn check(config: &ModelConfig) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    for row in TABLE.iter().filter(|row| (row.asked)(config)) {
        let (field, model, so) = (row.field, &config.name, row.so);
        let message = format!("'{field}' of model '{model}' is not supported yet: {so}");
        match row.answer {
            Refuse => return Err(ConfigError::unsupported(message)),
            Warn => warnings.push(message),
        }
    }
    Ok(warnings)
}

#[cfg(test)]
#[path = "unsupported_tests.rs"]
mod tests;
