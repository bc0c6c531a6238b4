//! Unit tests of `sequence.rs`.

use super::super::super::testing::parse;
use super::*;
use trtserver_proto::v2::model_config::SchedulingChoice;

/// The error of the sequence checks alone, without those of unsupported fields.
fn sequence_error(fields: &str) -> String {
    let text = format!("name: 'm' max_batch_size: 8 sequence_batching {{ {fields} }}");
    let config = parse(&text);
    let Some(SchedulingChoice::SequenceBatching(sequence)) = &config.scheduling_choice else {
        panic!("{text}");
    };
    check_sequence(&config, sequence).map(|()| String::new()).unwrap_or_else(|e| e.message)
}

#[test]
fn strategy_rules() {
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
        assert_eq!(sequence_error(fields), expected, "{fields}");
    }
}

#[test]
fn duplicate_names_are_refused() {
    let control = "control_input { name: 'c' control { kind: CONTROL_SEQUENCE_START \
                   int32_false_true: [ 0, 1 ] } }";
    let state = |input: &str| {
        format!("state {{ input_name: '{input}' output_name: 'o' data_type: TYPE_FP32 dims: 1 }}")
    };
    for (fields, sequence, expected) in [
        (
            "input { name: 'c' }",
            control.to_owned(),
            "sequence batching control tensor 'c' is a declared input too for m",
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
            "state output 'o' is declared as an output with data type TYPE_INT32, but as a \
             state with TYPE_FP32 for m",
        ),
    ] {
        let text = format!("name: 'm' {fields} sequence_batching {{ {sequence} }}");
        let config = parse(&text);
        let Some(SchedulingChoice::SequenceBatching(sequence)) = &config.scheduling_choice else {
            panic!("{text}");
        };
        let got = check_sequence(&config, sequence).map_or_else(|e| e.message, |()| String::new());
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn implicit_state_rules() {
    let state = |fields: &str| format!("state {{ input_name: 'i' output_name: 'o' {fields} }}");
    let initial = |fields: &str| {
        state(&format!("data_type: TYPE_FP32 dims: [ -1, 2 ] initial_state {{ {fields} }}"))
    };
    for (fields, expected) in [
        (state("data_type: TYPE_FP32 dims: 1"), ""),
        ("state {}".to_owned(), ""),
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
        assert_eq!(sequence_error(&fields), expected, "{fields}");
    }
}

#[test]
fn control_input_rules() {
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
            input("name: 'c'", "control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING }"),
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
            // The name is checked before the kind.
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
            input("name: 'c'", "control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 }"),
            CORRID,
        ),
        (input("name: 'c'", "control { kind: CONTROL_SEQUENCE_CORRID }"), CORRID),
    ] {
        assert_eq!(sequence_error(&fields), expected, "{fields}");
    }
}
