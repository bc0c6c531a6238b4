//! Rules for sequence batching: the strategy and the control tensors.

use std::collections::HashSet;

use trtserver_proto::v2::model_sequence_batching::control::Kind;
use trtserver_proto::v2::model_sequence_batching::{Control, InitialState, State, StrategyChoice};
use trtserver_proto::v2::{DataType, ModelConfig, ModelSequenceBatching};

use super::super::ConfigError;
use super::{batching, refuse};

pub(super) fn check(
    config: &ModelConfig,
    sequence: &ModelSequenceBatching,
) -> Result<(), ConfigError> {
    let model = &config.name;
    match &sequence.strategy_choice {
        Some(StrategyChoice::Direct(direct))
            if !(0.0..=1.0).contains(&direct.minimum_slot_utilization) =>
        {
            return refuse(format!(
                "sequence batching minimum slot utilization must be in range (0.0, 1.0] for {model}"
            ));
        }
        Some(StrategyChoice::Oldest(oldest)) if oldest.max_candidate_sequences < 0 => {
            return refuse(format!(
                "sequence batching maximum candidate sequences must be non-negative for {model}: it \
                 is {}",
                oldest.max_candidate_sequences
            ));
        }
        Some(StrategyChoice::Oldest(oldest)) => {
            let what = "sequence batching preferred batch size";
            batching::sizes(config, &oldest.preferred_batch_size, what)?;
        }
        _ => {}
    }
    let (mut kinds, mut names) = (HashSet::new(), HashSet::new());
    for input in &sequence.control_input {
        if input.name.is_empty() {
            return refuse(format!(
                "sequence batching control tensor must have a name for {model}"
            ));
        }
        if !names.insert(&input.name) || input.control.len() > 1 {
            return refuse(several_kinds(&input.name, model));
        }
        if input.control.is_empty() {
            return refuse(format!(
                "sequence batching must specify a control for control tensor '{}' for {model}",
                input.name
            ));
        }
        for control in &input.control {
            let kind = control.kind();
            if !kinds.insert(kind) {
                let kind = kind.as_str_name();
                return refuse(format!(
                    "sequence batching specifies multiple {kind} tensors for {model}"
                ));
            }
            // A backend finds its inputs by name.
            let mut states = sequence.state.iter();
            let taken = if config.input.iter().any(|i| i.name == input.name) {
                Some("an input of clients")
            } else {
                states.any(|s| s.input_name == input.name).then_some("a state input")
            };
            if let Some(what) = taken {
                return refuse(format!(
                    "sequence batching control tensor '{}' is {what} too for {model}",
                    input.name
                ));
            }
            match kind {
                Kind::ControlSequenceCorrid => correlation(control, model)?,
                _ => flag(control, model)?,
            }
        }
    }
    states(config, sequence)
}

fn several_kinds(tensor: &str, model: &str) -> String {
    format!(
        "sequence batching control tensor '{tensor}' is specified for multiple control kinds for {model}"
    )
}

/// Implicit states (contract/v2 §4.11).
fn states(config: &ModelConfig, sequence: &ModelSequenceBatching) -> Result<(), ConfigError> {
    let model = &config.name;
    let (mut inputs, mut outputs) = (HashSet::new(), HashSet::new());
    for state in &sequence.state {
        let input = &state.input_name;
        if input.is_empty() || state.output_name.is_empty() {
            return refuse(format!(
                "state of sequence batching must specify 'input_name' and 'output_name' for {model}"
            ));
        }
        if !inputs.insert(input) {
            return refuse(format!("State input name '{input}' specified more than once."));
        }
        if !outputs.insert(&state.output_name) {
            let output = &state.output_name;
            return refuse(format!("State output name '{output}' specified more than once."));
        }
        if config.input.iter().any(|declared| declared.name == *input) {
            return refuse(format!("state input '{input}' is an input of clients too for {model}"));
        }
        if DataType::try_from(state.data_type).is_err()
            || state.data_type() == DataType::TypeInvalid
        {
            return refuse(format!("state input '{input}' must specify 'data_type' for {model}"));
        }
        let declared = config.output.iter().find(|output| output.name == state.output_name);
        if let Some(output) = declared.filter(|output| output.data_type != state.data_type) {
            return refuse(format!(
                "state output '{}' is an output of clients too, but has data type {} there and {} as \
                 a state for {model}",
                output.name,
                output.data_type().as_str_name(),
                state.data_type().as_str_name()
            ));
        }
        if state.dims.iter().any(|&dim| dim < 1 && dim != -1) {
            return refuse(format!(
                "state input '{input}' dimension must be integer >= 1, or -1 to indicate a \
                 variable-size dimension for {model}"
            ));
        }
        match &*state.initial_state {
            [] => {}
            [initial] => initial_state(state, initial)?,
            more => {
                let count = more.len();
                return refuse(format!(
                    "initial_state field for state input '{input}' must contain exactly one or zero \
                     element. Found '{count}' elements."
                ));
            }
        }
    }
    Ok(())
}

fn initial_state(state: &State, initial: &InitialState) -> Result<(), ConfigError> {
    let input = &state.input_name;
    if initial.name.is_empty() {
        return refuse(format!(
            "Field 'name' must be set when using initial_state for state input '{input}'."
        ));
    }
    if initial.data_type != state.data_type {
        return refuse(format!(
            "The data type used for 'initial_state' field of state '{input}' does not match the \
             state data type."
        ));
    }
    if initial.dims.iter().any(|&dim| dim < 0) {
        return refuse(format!(
            "'initial_state' field for state input name '{input}' contains variable dimensions."
        ));
    }
    if initial.dims.len() != state.dims.len() {
        return refuse(format!(
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for \
             state input '{input}'. {} != {}",
            initial.dims.len(),
            state.dims.len()
        ));
    }
    let mut pairs = initial.dims.iter().zip(&state.dims);
    if let Some((dim, want)) = pairs.find(|(dim, want)| dim != want && **want != -1) {
        return refuse(format!(
            "'initial_state' dim for input name '{input}' doesn't match 'state' dim description. \
             {dim} != {want}"
        ));
    }
    if initial.state_data.is_none() {
        return refuse(format!(
            "initial_state setting expects state '{input}' to have state_data set"
        ));
    }
    Ok(())
}

/// The values for false and true, by field: how many there are.
fn lists(control: &Control) -> [(&'static str, usize); 3] {
    [
        ("int32_false_true", control.int32_false_true.len()),
        ("fp32_false_true", control.fp32_false_true.len()),
        ("bool_false_true", control.bool_false_true.len()),
    ]
}

/// START, READY and END: exactly one pair of values for false and true.
fn flag(control: &Control, model: &str) -> Result<(), ConfigError> {
    let kind = control.kind().as_str_name();
    let lists = lists(control);
    let mut given = lists.iter().filter(|(_, len)| *len > 0);
    match (given.next(), given.next()) {
        (None, _) => refuse(format!(
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or \
             'bool_false_true' for {kind} for {model}"
        )),
        (Some(_), Some(_)) => refuse(format!(
            "sequence batching specifies more than one from 'int32_false_true', \
             'fp32_false_true' and 'bool_false_true' for {kind} for {model}"
        )),
        (Some((list, len)), None) if *len != 2 => refuse(format!(
            "sequence batching control '{list}' must have exactly 2 entries for {kind} for {model}"
        )),
        _ => Ok(()),
    }
}

fn correlation(control: &Control, model: &str) -> Result<(), ConfigError> {
    use DataType::{TypeInt32, TypeInt64, TypeString, TypeUint32, TypeUint64};
    if lists(control).iter().any(|(_, len)| *len > 0) {
        return refuse(format!(
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or \
             'bool_false_true' for CONTROL_SEQUENCE_CORRID for {model}"
        ));
    }
    match control.data_type() {
        TypeUint64 | TypeInt64 | TypeUint32 | TypeInt32 | TypeString => Ok(()),
        _ => refuse(format!(
            "unexpected data type for control CONTROL_SEQUENCE_CORRID for {model}. Allowed data \
             types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        )),
    }
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
