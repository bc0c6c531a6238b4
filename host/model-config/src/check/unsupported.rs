//! Table of configuration fields that this server does not support yet. A change that adds the
//! feature deletes its row.

use trtserver_proto::v2::model_config::SchedulingChoice::SequenceBatching;
use trtserver_proto::v2::{ModelConfig, ModelSequenceBatching};

use super::super::{ConfigError, ConfigPart, ConfigWarning};

/// What happens to a model that sets the field.
enum FieldAction {
    /// The model is refused, because responses would be wrong, or not what clients expect.
    Refuse,
    /// A warning is logged, because responses are correct without the feature.
    Warn,
}
use FieldAction::{Refuse, Warn};

struct UnsupportedField {
    /// Name of the field, as the configuration spells it.
    field: &'static str,
    is_set: fn(&ModelConfig) -> bool,
    action: FieldAction,
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
        action: Refuse,
        consequence: "each request is executed once, not until the model ends its sequence",
    },
    UnsupportedField {
        field: "sequence_batching.state.use_growable_memory",
        is_set: |c| {
            sequence_batching(c).is_some_and(|s| s.state.iter().any(|s| s.use_growable_memory))
        },
        action: Refuse,
        consequence: "states are kept in host memory, not in CUDA virtual memory",
    },
    UnsupportedField {
        field: "model_repository_agents",
        is_set: |c| c.model_repository_agents.as_ref().is_some_and(|a| !a.agents.is_empty()),
        action: Refuse,
        consequence: "repository agents are not run on the model's files",
    },
    UnsupportedField {
        field: "instance_group.passive",
        is_set: |c| c.instance_group.iter().any(|group| group.passive),
        action: Refuse,
        consequence: "all instances get requests",
    },
];

/// A warning or an error for each row that applies.
pub(super) fn check_unsupported(config: &ModelConfig) -> (Vec<ConfigWarning>, Vec<ConfigError>) {
    let (mut warnings, mut refused) = (Vec::new(), Vec::new());
    for row in TABLE.iter().filter(|row| (row.is_set)(config)) {
        let (field, model, consequence) = (row.field, &config.name, row.consequence);
        let message = format!("'{field}' of model '{model}' is not supported yet: {consequence}");
        match row.action {
            Refuse => {
                refused.push(ConfigError::unsupported(message).about(ConfigPart::Field(field)))
            }
            Warn => warnings.push(ConfigWarning { field: field.to_owned(), message }),
        }
    }
    (warnings, refused)
}

/// The fields of the table, and whether they refuse the model.
#[cfg(test)]
pub fn unsupported_fields() -> Vec<(&'static str, bool)> {
    TABLE.iter().map(|row| (row.field, matches!(row.action, Refuse))).collect()
}

#[cfg(test)]
#[path = "unsupported_tests.rs"]
mod tests;
