//! Autocomplete: adds tensors, batch size and scheduler that a configuration omits.

use crate::parameters::Parameters;
use crate::plan::{INPUT, ModelWidths, SCORES, score_forms};
use std::fmt::Write;
use trtserver_framework::config::Config;

/// Rows of a batch, unless the server or the configuration sets another limit. A limit alone costs
/// no memory: batches are computed in chunks.
pub const DEFAULT_BATCH: usize = 131_072;

/// Protobuf text with what the configuration lacks. Leaves and contributions are not completed:
/// requests that name no outputs would compute them all.
pub fn config_patch(
    config: &Config,
    widths: &ModelWidths,
    parameters: &Parameters,
    default_batch: usize,
) -> Option<String> {
    let mut text = String::new();
    let has_rows = config.inputs.iter().chain(&config.outputs).any(|own| own.model_dims.len() > 1);
    let mut rows = config.max_batch_size;
    if rows == 0 && !has_rows && default_batch > 0 {
        rows = default_batch;
        let _ = writeln!(text, "max_batch_size: {rows}");
    }
    if rows > 1 && !config.facts.has_scheduler {
        text.push_str("dynamic_batching { }\n");
    }
    let lead = if rows > 0 { "" } else { "-1, " };
    if config.inputs.is_empty() {
        let features = widths.features;
        let _ = writeln!(
            text,
            "input {{ name: \"{INPUT}\" data_type: TYPE_FP32 dims: [ {lead}{features} ] }}"
        );
    }
    if config.outputs.is_empty() {
        let form = score_forms(widths, parameters)[0];
        let width = form.width(widths.scores);
        let _ = writeln!(
            text,
            "output {{ name: \"{SCORES}\" data_type: TYPE_FP32 dims: [ {lead}{width} ] }}"
        );
    }
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
