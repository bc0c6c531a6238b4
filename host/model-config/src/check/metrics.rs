//! `model_metrics`: the buckets of a model's latency histograms.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_metrics::MetricControl;
use trtserver_proto::v2::model_metrics::metric_control::MetricOptions;

use super::super::ConfigError;
use super::refuse_config;
use trtserver_base::stats::{HISTOGRAMS, HistogramBuckets, MAX_BOUNDS};

/// The buckets of a checked configuration.
pub fn histogram_buckets(config: &ModelConfig) -> HistogramBuckets {
    HistogramBuckets::new(|family| {
        let of_family = |control: &&MetricControl| {
            control.metric_identifier.as_ref().is_some_and(|id| id.family == family)
        };
        metric_controls(config).find(of_family).and_then(control_bounds)
    })
}

fn metric_controls(config: &ModelConfig) -> impl Iterator<Item = &MetricControl> {
    config.model_metrics.iter().flat_map(|metrics| &metrics.metric_control)
}

fn control_bounds(control: &MetricControl) -> Option<&[f64]> {
    match &control.metric_options {
        Some(MetricOptions::HistogramOptions(histogram)) => Some(&histogram.buckets),
        None => None,
    }
}

pub(super) fn check_metrics(config: &ModelConfig) -> Result<(), ConfigError> {
    let model = &config.name;
    for control in metric_controls(config) {
        let Some(identifier) = &control.metric_identifier else {
            return refuse_config(format!(
                "metric control must specify 'metric_identifier' for {model}"
            ));
        };
        let family = &identifier.family;
        if family.is_empty() {
            return refuse_config(format!(
                "metric identifier must specify non-empty 'family' for {model}"
            ));
        }
        if !HISTOGRAMS.iter().any(|kind| kind.family == family) {
            let known: Vec<&str> = HISTOGRAMS.iter().map(|kind| kind.family).collect();
            return refuse_config(format!(
                "Metric family '{family}' in 'metric_identifier' is not a customizable metric in \
                 Triton core. Those of this server are {}, for {model}",
                known.join(", ")
            ));
        }
        let Some(bounds) = control_bounds(control) else {
            return refuse_config(format!(
                "metric control must specify 'histogram_options' for {model}"
            ));
        };
        if bounds.is_empty() {
            return refuse_config(format!(
                "histogram options must specify non-empty 'buckets' for {model}"
            ));
        }
        let ascending = bounds.is_sorted_by(|a, b| a < b);
        if !ascending || bounds.iter().any(|bound| !bound.is_finite() || *bound < 0.0) {
            return refuse_config(format!(
                "'buckets' of '{family}' must be finite, not negative and in ascending order for {model}"
            ));
        }
        if bounds.len() > MAX_BOUNDS {
            return refuse_config(format!(
                "'buckets' of '{family}' are {}, at most {MAX_BOUNDS} are possible, for {model}",
                bounds.len()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
