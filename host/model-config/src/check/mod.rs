//! Checks configurations: refuses those that cannot work.
//!
//! Error texts: where v1.x and v2 differ, the text of v2, which names the tensor, followed by
//! ` for MODEL` of v1.x, so that clients of both find their text. Where v2 says less than v1.x, the
//! text of v1.x.

mod accelerators;
mod batch_io;
mod batching;
mod ensemble;
mod extras;
mod instance_groups;
mod metrics;
mod sequence;
mod states;
mod tensors;
mod trtis_rules;
mod unsupported;

use trtserver_model_files::stays_inside;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::error::refuse_config;
use super::platforms::ENSEMBLE;
use super::{ConfigError, ConfigPart, ConfigWarning, InstanceSupport, MachineFacts, fields};

#[cfg(test)]
pub(super) use unsupported::unsupported_fields;

pub use metrics::histogram_buckets;
pub use states::named_states;
pub use trtis_rules::check_trtis_rules;

/// Checks a normalised configuration. Returns warnings of settings without effect, and of
/// unsupported settings that do not change the responses. `support` is that of the model's backend;
/// `max_instances` is `--max-instances-per-model`.
///
/// # Errors
/// The configuration is invalid, or uses features that this server does not support: every reason
/// that does not follow from another. A load reports the first.
pub fn check_config(
    config: &ModelConfig,
    machine: &MachineFacts,
    support: &InstanceSupport,
    max_instances: usize,
) -> Result<Vec<ConfigWarning>, Vec<ConfigError>> {
    check_identity(config).map_err(|e| vec![e.about(ConfigPart::Field(""))])?;
    let mut refused: Vec<ConfigError> = Vec::new();
    let mut refuse_each = |field, found: Vec<ConfigError>| {
        refused.extend(found.into_iter().map(|e| e.about(ConfigPart::Field(field))));
    };
    refuse_each("", check_general(config));
    refuse_each("", tensors::check_tensors(config, support));
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(dynamic)) => {
            refuse_each("dynamic_batching", error_list(batching::check_batching(config, dynamic)));
        }
        Some(SchedulingChoice::SequenceBatching(batching)) => {
            refuse_each(
                "sequence_batching",
                error_list(sequence::check_sequence(config, batching)),
            );
        }
        Some(SchedulingChoice::EnsembleScheduling(_)) | None => {}
    }
    if config.platform == ENSEMBLE {
        refuse_each("", error_list(ensemble::check_ensemble(config)));
    } else {
        let found = instance_groups::check_instance_groups(config, machine, support, max_instances);
        refuse_each("instance_group", found);
    }
    let found = error_list(accelerators::check_accelerators(config, support));
    refuse_each("optimization.execution_accelerators", found);
    refuse_each("", error_list(batch_io::check_batch_io(config, support)));
    refuse_each("", extras::check_extras(config));
    refuse_each("model_metrics", error_list(metrics::check_metrics(config)));
    refuse_each("", unsupported::check_unsupported(config));
    if !refused.is_empty() {
        return Err(refused);
    }
    let mut warnings = Vec::new();
    warnings.extend(batching::without_effect(config));
    warnings.extend(states::empty_states(config));
    warnings.extend(instance_groups::unused_devices(config, support));
    warnings.extend(accelerators::idle_accelerators(config));
    warnings.extend(fields::without_effect(config, support.flags));
    Ok(warnings)
}

/// The error of a check that ends with its first one.
fn error_list(checked: Result<(), ConfigError>) -> Vec<ConfigError> {
    checked.err().into_iter().collect()
}

/// Which model it is: all other checks depend on this.
fn check_identity(config: &ModelConfig) -> Result<(), ConfigError> {
    let name = &config.name;
    if name.is_empty() {
        return refuse_config("model configuration must specify 'name'");
    }
    if config.platform.is_empty() && config.backend.is_empty() {
        return refuse_config(format!("must specify 'platform' or 'backend' for '{name}'"));
    }
    let ensemble =
        matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_)));
    if config.platform == ENSEMBLE && !config.backend.is_empty() {
        return refuse_config(format!(
            "Ensemble model '{name}' must have platform type 'ensemble' and empty backend type"
        ));
    }
    if ensemble && config.platform != ENSEMBLE {
        return refuse_config(format!(
            "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble"
        ));
    }
    if !ensemble && config.platform == ENSEMBLE {
        return refuse_config(format!(
            "ensemble scheduling must be set for ensemble {name} whose platform is ensemble"
        ));
    }
    Ok(())
}

fn check_general(config: &ModelConfig) -> Vec<ConfigError> {
    let (name, mut refused) = (&config.name, Vec::new());
    if config.max_batch_size < 0 {
        refused.push(format!("'max_batch_size' must be non-negative value for {name}"));
    }
    if config.version_policy.as_ref().is_none_or(|policy| policy.policy_choice.is_none()) {
        refused.push(format!("must specify 'version policy' for {name}"));
    }
    let by_compute = config.cc_model_filenames.values();
    for file in by_compute.chain([&config.default_model_filename]) {
        // A configuration may come with a load request and must not name files outside the model's
        // directory.
        if !stays_inside(file) {
            refused
                .push(format!("model file name '{file}' leaves the version directory for {name}"));
        }
    }
    refused.into_iter().map(ConfigError::invalid).collect()
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
