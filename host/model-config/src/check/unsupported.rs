//! Table of configuration fields that this server does not support yet. A change that adds the
//! feature deletes its row.

use trtserver_proto::v2::model_config::SchedulingChoice::SequenceBatching;
use trtserver_proto::v2::{ModelConfig, ModelSequenceBatching};

use super::super::{ConfigError, ConfigPart};

/// A model that sets the field is refused, because responses would be wrong, or not what clients
/// expect.
struct UnsupportedField {
    /// Name of the field, as the configuration spells it.
    field: &'static str,
    is_set: fn(&ModelConfig) -> bool,
    /// What the server does instead, for the operator.
    consequence: &'static str,
}

/// The sequence batching of a configuration.
fn sequence_batching(config: &ModelConfig) -> Option<&ModelSequenceBatching> {
    match &config.scheduling_choice {
        Some(SequenceBatching(sequence)) => Some(sequence),
        _ => None,
    }
}

const TABLE: &[UnsupportedField] = &[
    UnsupportedField {
        field: "sequence_batching.iterative_sequence",
        is_set: |c| sequence_batching(c).is_some_and(|s| s.iterative_sequence),
        consequence: "each request is executed once, not until the model ends its sequence",
    },
    UnsupportedField {
        field: "sequence_batching.state.use_growable_memory",
        is_set: |c| {
            sequence_batching(c).is_some_and(|s| s.state.iter().any(|s| s.use_growable_memory))
        },
        consequence: "states are kept in host memory, not in CUDA virtual memory",
    },
    UnsupportedField {
        field: "model_repository_agents",
        is_set: |c| c.model_repository_agents.as_ref().is_some_and(|a| !a.agents.is_empty()),
        consequence: "repository agents are not run on the model's files",
    },
    UnsupportedField {
        field: "instance_group.passive",
        is_set: |c| c.instance_group.iter().any(|group| group.passive),
        consequence: "all instances get requests",
    },
];

/// An error for each row that applies.
pub(super) fn check_unsupported(config: &ModelConfig) -> Vec<ConfigError> {
    let refused = TABLE.iter().filter(|row| (row.is_set)(config));
    refused
        .map(|row| {
            let (field, model, consequence) = (row.field, &config.name, row.consequence);
            let message =
                format!("'{field}' of model '{model}' is not supported yet: {consequence}");
            ConfigError::unsupported(message).about(ConfigPart::Field(field))
        })
        .collect()
}

/// The fields of the table.
#[cfg(test)]
pub fn unsupported_fields() -> Vec<&'static str> {
    TABLE.iter().map(|row| row.field).collect()
}

#[cfg(test)]
#[path = "unsupported_tests.rs"]
mod tests;
