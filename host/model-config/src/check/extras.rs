//! Checks of warm-up and response cache.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::super::ConfigError;
use super::refuse_config;

pub(super) fn check_extras(config: &ModelConfig) -> Vec<ConfigError> {
    let checks = [check_warmup, check_response_cache];
    checks.iter().filter_map(|check| check(config).err()).collect()
}

fn check_warmup(config: &ModelConfig) -> Result<(), ConfigError> {
    let model = &config.name;
    // Samples of batch size 0 are skipped, whatever they hold.
    let samples = config.model_warmup.iter().filter(|sample| sample.batch_size > 0);
    for (name, input) in samples.flat_map(|sample| &sample.inputs) {
        if input.dims.iter().any(|&dim| dim < 0) {
            return refuse_config(format!(
                "warmup setting expects all variable-size dimensions are specified for input \
                 '{name}' for {model}"
            ));
        }
        if input.input_data_type.is_none() {
            return refuse_config(format!(
                "warmup setting expects input '{name}' to have input_data_type set for {model}"
            ));
        }
    }
    Ok(())
}

fn check_response_cache(config: &ModelConfig) -> Result<(), ConfigError> {
    if config.response_cache.as_ref().is_none_or(|cache| !cache.enable) {
        return Ok(());
    }
    let sequence = matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_)));
    let decoupled = config.model_transaction_policy.as_ref().is_some_and(|p| p.decoupled);
    let with = match (sequence, decoupled) {
        (true, _) => "sequence batching scheduler",
        (_, true) => "'decoupled' transaction policy",
        _ => return Ok(()),
    };
    refuse_config(format!(
        "Response Cache does not currently support model {} with {with}. Please disable the \
         response cache.",
        config.name
    ))
}

#[cfg(test)]
#[path = "extras_tests.rs"]
mod tests;
