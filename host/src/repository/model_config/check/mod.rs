//! Refuses configurations that cannot work, in words the operator knows.
//!
//! The texts: where the two generations differ, today's wording (it names the tensor) followed by
//! the older ` for MODEL`, so that what either generation looks for is found. Where today's wording
//! says less than v1.x did, v1.x's stands.

mod batching; // dynamic batching and its queues
mod ensemble; // steps of an ensemble and their tensors
mod extras; // batch inputs and outputs, warm-up, response cache, metrics
mod instance_groups; // instance groups against the GPUs of this machine
mod sequence; // sequence batching: strategy and control inputs
mod tensors; // declared inputs and outputs
mod unsupported; // fields that this server does not support

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::platforms::ENSEMBLE;
use super::{ConfigError, Machine};

/// Checks a normalised configuration. What is sensible but not done by this server yet is refused
/// as well, or, where the model can still be served correctly, comes back as a warning. So does what has no effect.
pub fn check(config: &ModelConfig, machine: &Machine) -> Result<Vec<String>, ConfigError> {
    general(config)?;
    tensors::check(config)?;
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(dynamic)) => batching::check(config, dynamic)?,
        Some(SchedulingChoice::SequenceBatching(batching)) => sequence::check(config, batching)?,
        Some(SchedulingChoice::EnsembleScheduling(_)) | None => {}
    }
    if config.platform == ENSEMBLE {
        ensemble::check(config)?;
    } else {
        instance_groups::check(config, machine)?;
    }
    extras::check(config)?;
    let mut warnings = unsupported::check(config)?;
    warnings.extend(batching::futile(config));
    Ok(warnings)
}

fn general(config: &ModelConfig) -> Result<(), ConfigError> {
    let name = &config.name;
    if name.is_empty() {
        return refuse("model configuration must specify 'name'");
    }
    if config.platform.is_empty() && config.backend.is_empty() {
        return refuse(format!("must specify 'platform' or 'backend' for '{name}'"));
    }
    let ensemble =
        matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_)));
    if config.platform == ENSEMBLE && !config.backend.is_empty() {
        return refuse(format!(
            "Ensemble model '{name}' must have platform type 'ensemble' and empty backend type"
        ));
    }
    if ensemble && config.platform != ENSEMBLE {
        return refuse(format!(
            "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble"
        ));
    }
    if !ensemble && config.platform == ENSEMBLE {
        return refuse(format!(
            "ensemble scheduling must be set for ensemble {name} whose platform is ensemble"
        ));
    }
    if config.max_batch_size < 0 {
        return refuse(format!("'max_batch_size' must be non-negative value for {name}"));
    }
    if config.version_policy.as_ref().is_none_or(|policy| policy.policy_choice.is_none()) {
        return refuse(format!("must specify 'version policy' for {name}"));
    }
    let by_compute = config.cc_model_filenames.values();
    for file in by_compute.chain([&config.default_model_filename]) {
        // A configuration may arrive over the wire; it must not point a backend at foreign files.
        if !stays_inside(file) {
            return refuse(format!(
                "model file name '{file}' leaves the version directory for {name}"
            ));
        }
    }
    Ok(())
}

/// Whether a relative path names something below the directory it is joined to. Links are not
/// followed: whoever may place one in the repository may place the file as well.
pub(in crate::repository) fn stays_inside(path: &str) -> bool {
    use std::path::Component::{CurDir, Normal};
    std::path::Path::new(path).components().all(|part| matches!(part, Normal(_) | CurDir))
}

/// Ends a check with `message`.
fn refuse<T>(message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::invalid(message))
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
