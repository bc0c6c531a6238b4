//! Checks of warm-up, response cache and metrics.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_metrics::metric_control::MetricOptions;

use super::super::ConfigError;
use super::refuse;

/// The only metric whose buckets a model can configure.
const CUSTOMIZABLE: &str = "nv_inference_first_response_histogram_ms";

pub(super) fn check(config: &ModelConfig) -> Vec<ConfigError> {
    let checks = [warmup, cache, metrics];
    checks.iter().filter_map(|check| check(config).err()).collect()
}

fn warmup(config: &ModelConfig) -> Result<(), ConfigError> {
    let model = &config.name;
    for (name, input) in config.model_warmup.iter().flat_map(|sample| &sample.inputs) {
        if input.dims.iter().any(|&dim| dim < 0) {
            return refuse(format!(
                "warmup setting expects all variable-size dimensions are specified for input \
                 '{name}' for {model}"
            ));
        }
        if input.input_data_type.is_none() {
            return refuse(format!(
                "warmup setting expects input '{name}' to have input_data_type set for {model}"
            ));
        }
    }
    Ok(())
}

fn cache(config: &ModelConfig) -> Result<(), ConfigError> {
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
    refuse(format!(
        "Response Cache does not currently support model {} with {with}. Please disable the \
         response cache.",
        config.name
    ))
}

fn metrics(config: &ModelConfig) -> Result<(), ConfigError> {
    let model = &config.name;
    for control in config.model_metrics.iter().flat_map(|metrics| &metrics.metric_control) {
        let Some(identifier) = &control.metric_identifier else {
            return refuse(format!("metric control must specify 'metric_identifier' for {model}"));
        };
        let family = &identifier.family;
        if family.is_empty() {
            return refuse(format!(
                "metric identifier must specify non-empty 'family' for {model}"
            ));
        }
        if family != CUSTOMIZABLE {
            return refuse(format!(
                "Metric family '{family}' in 'metric_identifier' is not a customizable metric in \
                 Triton core. The only one is '{CUSTOMIZABLE}', for {model}"
            ));
        }
        let Some(MetricOptions::HistogramOptions(histogram)) = &control.metric_options else {
            return refuse(format!("metric control must specify 'histogram_options' for {model}"));
        };
        if histogram.buckets.is_empty() {
            return refuse(format!(
                "histogram options must specify non-empty 'buckets' for {model}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "extras_tests.rs"]
mod tests;
