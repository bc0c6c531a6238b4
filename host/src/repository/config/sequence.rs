//! Rules for sequence batching: the strategy and the control tensors.

use std::collections::HashSet;

use trtserver_proto::v2::model_sequence_batching::control::Kind;
use trtserver_proto::v2::model_sequence_batching::{Control, InitialState, State, StrategyChoice};
use trtserver_proto::v2::{DataType, ModelConfig, ModelSequenceBatching};

use super::{ConfigError, batching, refuse};

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
mod tests {
    use super::super::testing::parse;
    use super::*;
    use trtserver_proto::v2::model_config::SchedulingChoice;

    /// The rules alone, whether or not the server supports sequences.
    fn complaint(fields: &str) -> String {
        let text = format!("name: 'm' max_batch_size: 8 sequence_batching {{ {fields} }}");
        let config = parse(&text);
        let Some(SchedulingChoice::SequenceBatching(sequence)) = &config.scheduling_choice else {
            panic!("{text}");
        };
        check(&config, sequence).map(|()| String::new()).unwrap_or_else(|e| e.message)
    }

    #[test]
    fn strategies() {
        for (fields, expected) in [
            ("", ""),
            ("direct {}", ""),
            ("direct { minimum_slot_utilization: 1.0 }", ""),
            (
                "direct { minimum_slot_utilization: 1.5 }",
                "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
            ),
            (
                "direct { minimum_slot_utilization: nan }",
                "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
            ),
            ("oldest { preferred_batch_size: [ 1, 8 ] }", ""),
            (
                "oldest { preferred_batch_size: 0 }",
                "sequence batching preferred batch size must be positive for m: it is 0",
            ),
            (
                "oldest { preferred_batch_size: 9 }",
                "sequence batching preferred batch size must be <= max batch size for m: 9 is more \
                 than 8",
            ),
            (
                "oldest { max_candidate_sequences: -1 }",
                "sequence batching maximum candidate sequences must be non-negative for m: it is -1",
            ),
        ] {
            assert_eq!(complaint(fields), expected, "{fields}");
        }
    }

    #[test]
    fn names_that_stand_for_two_things() {
        let control = "control_input { name: 'c' control { kind: CONTROL_SEQUENCE_START \
                       int32_false_true: [ 0, 1 ] } }";
        let state = |input: &str| {
            format!(
                "state {{ input_name: '{input}' output_name: 'o' data_type: TYPE_FP32 dims: 1 }}"
            )
        };
        for (fields, sequence, expected) in [
            (
                "input { name: 'c' }",
                control.to_owned(),
                "sequence batching control tensor 'c' is an input of clients too for m",
            ),
            (
                "",
                format!("{control} {}", state("c")),
                "sequence batching control tensor 'c' is a state input too for m",
            ),
            ("output { name: 'o' data_type: TYPE_FP32 }", state("s"), ""),
            (
                "output { name: 'o' data_type: TYPE_INT32 }",
                state("s"),
                "state output 'o' is an output of clients too, but has data type TYPE_INT32 there and \
                 TYPE_FP32 as a state for m",
            ),
        ] {
            let text = format!("name: 'm' {fields} sequence_batching {{ {sequence} }}");
            let config = parse(&text);
            let Some(SchedulingChoice::SequenceBatching(sequence)) = &config.scheduling_choice
            else {
                panic!("{text}");
            };
            let got = check(&config, sequence).map_or_else(|e| e.message, |()| String::new());
            assert_eq!(got, expected, "{text}");
        }
    }

    #[test]
    fn states() {
        let state = |fields: &str| format!("state {{ input_name: 'i' output_name: 'o' {fields} }}");
        let initial = |fields: &str| {
            state(&format!("data_type: TYPE_FP32 dims: [ -1, 2 ] initial_state {{ {fields} }}"))
        };
        for (fields, expected) in [
            (state("data_type: TYPE_FP32 dims: 1"), ""),
            (initial("name: 'n' data_type: TYPE_FP32 dims: [ 3, 2 ] zero_data: true"), ""),
            (
                "state { input_name: 'i' data_type: TYPE_FP32 dims: 1 }".to_owned(),
                "state of sequence batching must specify 'input_name' and 'output_name' for m",
            ),
            (state("dims: 1"), "state input 'i' must specify 'data_type' for m"),
            (
                state("data_type: TYPE_FP32 dims: 1") + &state("data_type: TYPE_FP32 dims: 1"),
                "State input name 'i' specified more than once.",
            ),
            (
                state("data_type: TYPE_FP32 dims: 1 initial_state {} initial_state {}"),
                "initial_state field for state input 'i' must contain exactly one or zero element. \
                 Found '2' elements.",
            ),
            (
                initial("data_type: TYPE_FP32"),
                "Field 'name' must be set when using initial_state for state input 'i'.",
            ),
            (
                initial("name: 'n' data_type: TYPE_FP64"),
                "The data type used for 'initial_state' field of state 'i' does not match the state \
                 data type.",
            ),
            (
                initial("name: 'n' data_type: TYPE_FP32 dims: [ -1, 2 ]"),
                "'initial_state' field for state input name 'i' contains variable dimensions.",
            ),
            (
                initial("name: 'n' data_type: TYPE_FP32 dims: [ 3, 4 ]"),
                "'initial_state' dim for input name 'i' doesn't match 'state' dim description. 4 != 2",
            ),
            (
                initial("name: 'n' data_type: TYPE_FP32 dims: 2"),
                "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions \
                 for state input 'i'. 1 != 2",
            ),
            (
                initial("name: 'n' data_type: TYPE_FP32 dims: [ 3, 2 ]"),
                "initial_state setting expects state 'i' to have state_data set",
            ),
        ] {
            assert_eq!(complaint(&fields), expected, "{fields}");
        }
    }

    #[test]
    fn controls() {
        const START: &str = "kind: CONTROL_SEQUENCE_START";
        const CORRID: &str = "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. \
                              Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, \
                              TYPE_INT32 and TYPE_STRING";
        let input = |name: &str, controls: &str| format!("control_input {{ {name} {controls} }}");
        let one = |rest: &str| input("name: 's'", &format!("control {{ {START} {rest} }}"));
        let pair = "int32_false_true: [ 0, 1 ]";
        for (fields, expected) in [
            (one(pair), ""),
            (one("fp32_false_true: [ 0, 1 ]"), ""),
            (one("bool_false_true: [ false, true ]"), ""),
            (input("", ""), "sequence batching control tensor must have a name for m"),
            (
                one(""),
                "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or \
                 'bool_false_true' for CONTROL_SEQUENCE_START for m",
            ),
            (
                one("int32_false_true: [ 0, 1 ] bool_false_true: [ false, true ]"),
                "sequence batching specifies more than one from 'int32_false_true', \
                 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_START for m",
            ),
            (
                one("fp32_false_true: 1"),
                "sequence batching control 'fp32_false_true' must have exactly 2 entries for \
                 CONTROL_SEQUENCE_START for m",
            ),
            (
                format!(
                    "{} {}",
                    one(pair),
                    input("name: 't'", &format!("control {{ {START} {pair} }}"))
                ),
                "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m",
            ),
            (
                format!(
                    "{} {}",
                    one(pair),
                    input("name: 's'", &format!("control {{ kind: CONTROL_SEQUENCE_END {pair} }}"))
                ),
                "sequence batching control tensor 's' is specified for multiple control \
                 kinds for m",
            ),
            (
                input("name: 'c'", ""),
                "sequence batching must specify a control for control tensor 'c' for m",
            ),
            (
                input(
                    "name: 'c'",
                    "control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING }",
                ),
                "",
            ),
            (
                input(
                    "name: 's'",
                    &format!(
                        "control {{ {START} {pair} }} control {{ kind: CONTROL_SEQUENCE_END {pair} }}"
                    ),
                ),
                "sequence batching control tensor 's' is specified for multiple control \
                 kinds for m",
            ),
            (
                // The name is looked at before the kind.
                format!("{} {}", one(pair), one(pair)),
                "sequence batching control tensor 's' is specified for multiple control \
                 kinds for m",
            ),
            (
                input(
                    "name: 'c'",
                    &format!(
                        "control {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 {pair} }}"
                    ),
                ),
                "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or \
                 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m",
            ),
            (
                input(
                    "name: 'c'",
                    "control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 }",
                ),
                CORRID,
            ),
            (input("name: 'c'", "control { kind: CONTROL_SEQUENCE_CORRID }"), CORRID),
        ] {
            assert_eq!(complaint(&fields), expected, "{fields}");
        }
    }
}
