//! Refuses configurations that cannot work, in words the operator knows.
//!
//! The texts: where the two generations differ, today's wording (it names the tensor) followed by
//! the older ` for MODEL`, so that what either generation looks for is found. Where today's wording
//! says less than v1.x did, v1.x's stands.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::platforms::ENSEMBLE;
use super::{
    ConfigError, Machine, batching, ensemble, extras, groups, refuse, sequence, tensors,
    unsupported,
};

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
        groups::check(config, machine)?;
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

#[cfg(test)]
mod tests {
    use super::super::Fault;
    use super::super::testing::{complaints, parse};
    use super::*;

    #[test]
    fn general_rules() {
        complaints(
            "",
            &[
                ("backend: 'b'", "model configuration must specify 'name'"),
                ("name: 'm'", "must specify 'platform' or 'backend' for 'm'"),
                (
                    "name: 'm' backend: 'b' max_batch_size: -1",
                    "'max_batch_size' must be non-negative value for m",
                ),
                (
                    "name: 'm' backend: 'b' default_model_filename: '../other/1/model.onnx'",
                    "model file name '../other/1/model.onnx' leaves the version directory for m",
                ),
                (
                    "name: 'm' backend: 'b' cc_model_filenames { key: '7.0' value: '/a' }",
                    "model file name '/a' leaves the version directory for m",
                ),
                ("name: 'm' backend: 'b' default_model_filename: 'sub/model.onnx'", ""),
                ("name: 'm' backend: 'b' parameters { key: 'k' value { string_value: 'v' } }", ""),
            ],
        );
    }

    #[test]
    fn what_normalisation_would_have_filled() {
        let mut config = parse("name: 'm' backend: 'b'");
        let error = |config: &ModelConfig| check(config, &Machine::default()).unwrap_err().message;
        assert_eq!(error(&config), "must specify 'version policy' for m");
        config.version_policy = parse("version_policy { all {} }").version_policy;
        assert_eq!(error(&config), "must specify one or more 'instance group's for m");
    }

    #[test]
    fn faults() {
        let config = parse("name: 'm' backend: 'b' max_batch_size: -1");
        assert_eq!(check(&config, &Machine::default()).unwrap_err().fault, Fault::Invalid);
    }
}
