//! Unit tests of `batch_io.rs`.

use super::super::super::testing::parse;
use super::*;

fn error(text: &str, support: &InstanceSupport) -> String {
    let config = parse(&format!(
        "name: 'm' input {{ name: 'i' dims: -1 }} input {{ name: 'j' optional: true }} \
         output {{ name: 'o' dims: -1 }} output {{ name: 'p' dims: [ 1, -1 ] }} {text}"
    ));
    check_batch_io(&config, support).map(|()| String::new()).unwrap_or_else(|e| e.message)
}

#[test]
fn batch_inputs_and_outputs_are_checked_against_the_tensors() {
    for (text, expected) in [
        ("batch_input { data_type: TYPE_FP32 source_input: 'i' target_name: 'b' }", ""),
        (
            "batch_input { data_type: TYPE_INT64 source_input: 'i' }",
            "batch input data type must be TYPE_INT32 or TYPE_FP32 for m",
        ),
        (
            "batch_input { data_type: TYPE_INT32 kind: BATCH_ITEM_SHAPE }",
            "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 0 for m",
        ),
        (
            "batch_input { data_type: TYPE_INT32 source_input: [ 'i', 'i' ] }",
            "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 2 for m",
        ),
        (
            "batch_input { data_type: TYPE_INT32 source_input: 'x' }",
            "unknown source input name 'x' for m",
        ),
        (
            "batch_input { data_type: TYPE_INT32 source_input: 'j' }",
            "source input 'j' must not be optional for m",
        ),
        (
            "batch_input { data_type: TYPE_INT32 source_input: 'i' }",
            "batch input must specify 'target_name' for m",
        ),
        (
            "batch_input { data_type: TYPE_INT32 source_input: 'i' target_name: [ 'b', 'b' ] }",
            "batch input 'b' is the name of another input for m",
        ),
        (
            "batch_input { data_type: TYPE_INT32 source_input: 'i' target_name: 's' } \
             sequence_batching { control_input { name: 's' } }",
            "batch input 's' is the name of another input for m",
        ),
        ("batch_output { source_input: 'i' target_name: 'o' }", ""),
        (
            "batch_output { target_name: 'o' }",
            "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 \
             for m",
        ),
        (
            "batch_output { source_input: 'i' target_name: 'i' }",
            "unknown target output name 'i' for m",
        ),
        (
            "batch_output { source_input: 'i' target_name: 'o' } \
             batch_output { source_input: 'i' target_name: 'o' }",
            "target output name 'o' can only be specified once for m",
        ),
        (
            "batch_output { source_input: 'i' target_name: 'p' }",
            "target output 'p' must have no reshape, and variable dimensions only where source \
             input 'i' has a dimension, for m",
        ),
        (
            "platform: 'ensemble' batch_output { source_input: 'i' target_name: 'o' }",
            "batch_output should not be specified for ensemble 'm'",
        ),
    ] {
        assert_eq!(error(text, &InstanceSupport::every_kind()), expected, "{text}");
    }
}

#[test]
fn batch_inputs_are_refused_for_backends_that_do_not_read_them() {
    let support =
        InstanceSupport { backend: "b".into(), flags: 0, ..InstanceSupport::every_kind() };
    let text = "batch_input { data_type: TYPE_INT32 source_input: 'i' target_name: 'b' }";
    assert_eq!(error(text, &support), "model 'm': backend 'b' reads no batch inputs");
    assert_eq!(error("batch_output { source_input: 'i' target_name: 'o' }", &support), "");
}
