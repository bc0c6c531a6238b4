//! Checks of implicit states of sequence batching (docs/protocol/v2.md §4.11).

use super::super::{ConfigError, ConfigWarning};
use super::refuse_config;
use std::collections::HashSet;
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_sequence_batching::{InitialState, State};
use trtserver_proto::v2::{DataType, ModelConfig, ModelSequenceBatching};

/// The states of a configuration. An empty message is none, as in Triton, which loads such a model.
pub fn named_states(sequence: &ModelSequenceBatching) -> impl Iterator<Item = &State> {
    sequence.state.iter().filter(|state| **state != State::default())
}

/// A warning for empty states.
pub(super) fn empty_states(config: &ModelConfig) -> Option<ConfigWarning> {
    let Some(SchedulingChoice::SequenceBatching(sequence)) = &config.scheduling_choice else {
        return None;
    };
    let field = "sequence_batching.state".to_owned();
    let message = format!("'{field}' has no effect where it is empty: it names no tensors");
    (named_states(sequence).count() < sequence.state.len())
        .then_some(ConfigWarning { field, message })
}

pub(super) fn check_states(
    config: &ModelConfig,
    sequence: &ModelSequenceBatching,
) -> Result<(), ConfigError> {
    let model = &config.name;
    let (mut inputs, mut outputs) = (HashSet::new(), HashSet::new());
    for state in named_states(sequence) {
        let input = &state.input_name;
        if input.is_empty() || state.output_name.is_empty() {
            return refuse_config(format!(
                "state of sequence batching must specify 'input_name' and 'output_name' for {model}"
            ));
        }
        if !inputs.insert(input) {
            return refuse_config(format!("State input name '{input}' specified more than once."));
        }
        if !outputs.insert(&state.output_name) {
            let output = &state.output_name;
            return refuse_config(format!(
                "State output name '{output}' specified more than once."
            ));
        }
        if config.input.iter().any(|declared| declared.name == *input) {
            return refuse_config(format!(
                "state input '{input}' is a declared input too for {model}"
            ));
        }
        if DataType::try_from(state.data_type).is_err()
            || state.data_type() == DataType::TypeInvalid
        {
            return refuse_config(format!(
                "state input '{input}' must specify 'data_type' for {model}"
            ));
        }
        let declared = config.output.iter().find(|output| output.name == state.output_name);
        if let Some(output) = declared.filter(|output| output.data_type != state.data_type) {
            return refuse_config(format!(
                "state output '{}' is declared as an output with data type {}, but as a state with {} for \
                 {model}",
                output.name,
                output.data_type().as_str_name(),
                state.data_type().as_str_name()
            ));
        }
        if state.dims.iter().any(|&dim| dim < 1 && dim != -1) {
            return refuse_config(format!(
                "state input '{input}' dimension must be integer >= 1, or -1 to indicate a \
                 variable-size dimension for {model}"
            ));
        }
        match &*state.initial_state {
            [] => {}
            [initial] => initial_state(state, initial)?,
            more => {
                let count = more.len();
                return refuse_config(format!(
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
        return refuse_config(format!(
            "Field 'name' must be set when using initial_state for state input '{input}'."
        ));
    }
    if initial.data_type != state.data_type {
        return refuse_config(format!(
            "The data type used for 'initial_state' field of state '{input}' does not match the \
             state data type."
        ));
    }
    if initial.dims.iter().any(|&dim| dim < 0) {
        return refuse_config(format!(
            "'initial_state' field for state input name '{input}' contains variable dimensions."
        ));
    }
    if initial.dims.len() != state.dims.len() {
        return refuse_config(format!(
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for \
             state input '{input}'. {} != {}",
            initial.dims.len(),
            state.dims.len()
        ));
    }
    let mut pairs = initial.dims.iter().zip(&state.dims);
    if let Some((dim, want)) = pairs.find(|(dim, want)| dim != want && **want != -1) {
        return refuse_config(format!(
            "'initial_state' dim for input name '{input}' doesn't match 'state' dim description. \
             {dim} != {want}"
        ));
    }
    if initial.state_data.is_none() {
        return refuse_config(format!(
            "initial_state setting expects state '{input}' to have state_data set"
        ));
    }
    Ok(())
}
