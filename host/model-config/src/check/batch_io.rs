//! Checks of `batch_input` and `batch_output` against the declared tensors and what the backend
//! reads.

use std::collections::HashSet;

use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput};

use super::super::platforms::ENSEMBLE;
use super::super::{ConfigError, ConfigPart, InstanceSupport};
use super::refuse_config;

pub(super) fn check_batch_io(
    config: &ModelConfig,
    support: &InstanceSupport,
) -> Result<(), ConfigError> {
    let about = |field| move |e: ConfigError| e.about(ConfigPart::Field(field));
    check_batch_inputs(config, support).map_err(about("batch_input"))?;
    check_batch_outputs(config).map_err(about("batch_output"))
}

fn check_batch_inputs(config: &ModelConfig, support: &InstanceSupport) -> Result<(), ConfigError> {
    let model = &config.name;
    let mut targets = HashSet::new();
    for batch in &config.batch_input {
        if !matches!(batch.data_type(), DataType::TypeInt32 | DataType::TypeFp32) {
            return refuse_config(format!(
                "batch input data type must be TYPE_INT32 or TYPE_FP32 for {model}"
            ));
        }
        let kind = batch.kind().as_str_name();
        one_source(("batch input", "batch_input"), kind, &batch.source_input, config)?;
        if batch.target_name.is_empty() {
            return refuse_config(format!("batch input must specify 'target_name' for {model}"));
        }
        for target in &batch.target_name {
            if is_input(config, target) || !targets.insert(target) {
                return refuse_config(format!(
                    "batch input '{target}' is the name of another input for {model}"
                ));
            }
        }
    }
    if !config.batch_input.is_empty() && !support.declares(backend_flags::BATCH_INPUTS) {
        return Err(ConfigError::unsupported(format!(
            "model '{model}': backend '{}' reads no batch inputs",
            support.backend
        )));
    }
    Ok(())
}

fn check_batch_outputs(config: &ModelConfig) -> Result<(), ConfigError> {
    let model = &config.name;
    let mut targets = HashSet::new();
    for batch in &config.batch_output {
        let kind = batch.kind().as_str_name();
        let names = ("batch output", "batch_output");
        let source = one_source(names, kind, &batch.source_input, config)?;
        for target in &batch.target_name {
            let Some(output) = config.output.iter().find(|output| output.name == *target) else {
                return refuse_config(format!("unknown target output name '{target}' for {model}"));
            };
            if !targets.insert(target) {
                return refuse_config(format!(
                    "target output name '{target}' can only be specified once for {model}"
                ));
            }
            let beyond = output.dims.iter().skip(source.dims.len());
            if output.reshape.is_some() || beyond.into_iter().any(|dim| *dim == -1) {
                return refuse_config(format!(
                    "target output '{target}' must have no reshape, and variable dimensions only where \
                     source input '{}' has a dimension, for {model}",
                    source.name
                ));
            }
        }
    }
    Ok(())
}

/// Every kind reads exactly one declared input, which every request has.
fn one_source<'a>(
    (what, field): (&str, &str),
    kind: &str,
    sources: &[String],
    config: &'a ModelConfig,
) -> Result<&'a ModelInput, ConfigError> {
    let model = &config.name;
    if config.platform == ENSEMBLE {
        return refuse_config(format!("{field} should not be specified for ensemble '{model}'"));
    }
    let [source] = sources else {
        let count = sources.len();
        return refuse_config(format!(
            "{what} kind '{kind}' expects 1 source input, got {count} for {model}"
        ));
    };
    let Some(input) = config.input.iter().find(|input| input.name == *source) else {
        return refuse_config(format!("unknown source input name '{source}' for {model}"));
    };
    if input.optional {
        return refuse_config(format!("source input '{source}' must not be optional for {model}"));
    }
    Ok(input)
}

/// A tensor that requests have without the batch input: declared, a control or a state of a
/// sequence.
fn is_input(config: &ModelConfig, name: &str) -> bool {
    let of_sequence = match &config.scheduling_choice {
        Some(SchedulingChoice::SequenceBatching(sequence)) => {
            sequence.control_input.iter().any(|control| control.name == name)
                || sequence.state.iter().any(|state| state.input_name == name)
        }
        _ => false,
    };
    of_sequence || config.input.iter().any(|input| input.name == name)
}

#[cfg(test)]
#[path = "batch_io_tests.rs"]
mod tests;
