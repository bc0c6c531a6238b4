//! Checks of sequence batching: the strategy and the control inputs.

use std::collections::HashSet;

use trtserver_proto::v2::model_sequence_batching::control::Kind;
use trtserver_proto::v2::model_sequence_batching::{Control, StrategyChoice};
use trtserver_proto::v2::{DataType, ModelConfig, ModelSequenceBatching};

use super::super::{ConfigError, ConfigPart};
use super::{batching, refuse_config, states};

pub(super) fn check_sequence(
    config: &ModelConfig,
    sequence: &ModelSequenceBatching,
) -> Result<(), ConfigError> {
    let model = &config.name;
    match &sequence.strategy_choice {
        Some(StrategyChoice::Direct(direct))
            if !(0.0..=1.0).contains(&direct.minimum_slot_utilization) =>
        {
            let text = format!(
                "sequence batching minimum slot utilization must be in range (0.0, 1.0] for {model}"
            );
            let part = ConfigPart::Field("sequence_batching.direct.minimum_slot_utilization");
            return Err(ConfigError::invalid(text).about(part));
        }
        Some(StrategyChoice::Oldest(oldest)) if oldest.max_candidate_sequences < 0 => {
            return refuse_config(format!(
                "sequence batching maximum candidate sequences must be non-negative for {model}: it \
                 is {}",
                oldest.max_candidate_sequences
            ));
        }
        Some(StrategyChoice::Oldest(oldest)) => {
            let what = "sequence batching preferred batch size";
            batching::check_batch_sizes(config, &oldest.preferred_batch_size, what)?;
        }
        _ => {}
    }
    let (mut kinds, mut names) = (HashSet::new(), HashSet::new());
    for input in &sequence.control_input {
        if input.name.is_empty() {
            return refuse_config(format!(
                "sequence batching control tensor must have a name for {model}"
            ));
        }
        if !names.insert(&input.name) || input.control.len() > 1 {
            return refuse_config(several_kinds(&input.name, model));
        }
        if input.control.is_empty() {
            return refuse_config(format!(
                "sequence batching must specify a control for control tensor '{}' for {model}",
                input.name
            ));
        }
        for control in &input.control {
            let kind = control.kind();
            if !kinds.insert(kind) {
                let kind = kind.as_str_name();
                return refuse_config(format!(
                    "sequence batching specifies multiple {kind} tensors for {model}"
                ));
            }
            // A backend looks up inputs by name, so names must be unique.
            let mut states = sequence.state.iter();
            let taken = if config.input.iter().any(|i| i.name == input.name) {
                Some("a declared input")
            } else {
                states.any(|s| s.input_name == input.name).then_some("a state input")
            };
            if let Some(what) = taken {
                return refuse_config(format!(
                    "sequence batching control tensor '{}' is {what} too for {model}",
                    input.name
                ));
            }
            match kind {
                Kind::ControlSequenceCorrid => check_correlation_control(control, model)?,
                _ => check_flag_control(control, model)?,
            }
        }
    }
    states::check_states(config, sequence)
}

fn several_kinds(tensor: &str, model: &str) -> String {
    format!(
        "sequence batching control tensor '{tensor}' is specified for multiple control kinds for {model}"
    )
}

/// Number of values for false and true, by field.
fn control_lists(control: &Control) -> [(&'static str, usize); 3] {
    [
        ("int32_false_true", control.int32_false_true.len()),
        ("fp32_false_true", control.fp32_false_true.len()),
        ("bool_false_true", control.bool_false_true.len()),
    ]
}

/// START, READY and END need exactly one pair of values for false and true.
fn check_flag_control(control: &Control, model: &str) -> Result<(), ConfigError> {
    let kind = control.kind().as_str_name();
    let lists = control_lists(control);
    let mut given = lists.iter().filter(|(_, len)| *len > 0);
    match (given.next(), given.next()) {
        (None, _) => refuse_config(format!(
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or \
             'bool_false_true' for {kind} for {model}"
        )),
        (Some(_), Some(_)) => refuse_config(format!(
            "sequence batching specifies more than one from 'int32_false_true', \
             'fp32_false_true' and 'bool_false_true' for {kind} for {model}"
        )),
        (Some((list, len)), None) if *len != 2 => refuse_config(format!(
            "sequence batching control '{list}' must have exactly 2 entries for {kind} for {model}"
        )),
        _ => Ok(()),
    }
}

fn check_correlation_control(control: &Control, model: &str) -> Result<(), ConfigError> {
    use DataType::{TypeInt32, TypeInt64, TypeString, TypeUint32, TypeUint64};
    if control_lists(control).iter().any(|(_, len)| *len > 0) {
        return refuse_config(format!(
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or \
             'bool_false_true' for CONTROL_SEQUENCE_CORRID for {model}"
        ));
    }
    match control.data_type() {
        TypeUint64 | TypeInt64 | TypeUint32 | TypeInt32 | TypeString => Ok(()),
        _ => refuse_config(format!(
            "unexpected data type for control CONTROL_SEQUENCE_CORRID for {model}. Allowed data \
             types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        )),
    }
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
