//! Unit tests of `parse.rs`.

use super::*;
use crate::v2::ModelConfig;

#[test]
fn what_is_printed_can_be_read() {
    let text = "name: 'm' platform: 'p' max_batch_size: 8 version_policy { specific { versions: [ 1, 3 ] } }
        input [ { name: 'I' data_type: TYPE_FP32 dims: [ -1, 16 ] reshape { shape: [ ] } } ]
        output [ { name: 'O' data_type: TYPE_STRING dims: 1 } ]
        dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 9000000000
          priority_queue_policy { key: 2 value { max_queue_size: 7 } } }
        instance_group [ { kind: KIND_CPU count: 2 } ]
        parameters { key: 'k' value { string_value: 'v \\\\ \\n' } } cc_model_filenames { key: '7.0' value: 'f' }
        optimization { priority: PRIORITY_MAX } model_transaction_policy { decoupled: true }";
    let config: ModelConfig = crate::text::parse(text).unwrap();
    let printed = crate::json::model_config(&config);
    assert_eq!(
        parse::<ModelConfig>(&printed).map_err(|e| format!("{e}\n{printed}")),
        Ok(config.clone())
    );
    let printed = crate::json::message(&config);
    assert_eq!(parse::<ModelConfig>(&printed).map_err(|e| format!("{e}\n{printed}")), Ok(config));
}

#[test]
fn names_and_values_of_other_forms_are_accepted() {
    let config = parse::<ModelConfig>(
        r#"{ "maxBatchSize": "4", "input": [ { "dataType": "type_int8", "dims": ["2", 3.0] } ], "output": null }"#,
    );
    let want = "max_batch_size: 4 input { data_type: TYPE_INT8 dims: [ 2, 3 ] }";
    assert_eq!(config, Ok(crate::text::parse(want).unwrap()));
    assert_eq!(parse::<ModelConfig>("{}"), Ok(ModelConfig::default()));
    let one = r#"{ "instance_group": { "count": 2, "gpus": 1 } }"#;
    let want = crate::text::parse("instance_group [ { count: 2 gpus: [ 1 ] } ]");
    assert_eq!(parse::<ModelConfig>(one), Ok(want.unwrap()));
}

#[test]
fn errors_name_the_position() {
    for (text, want) in [
        ("", ": EOF while parsing a value"),
        ("{", ": EOF while parsing an object"),
        ("[]", "1:2: invalid type: sequence, expected an object for the message"),
        ("{} x", ": trailing characters"),
        (
            "{\n \"max_batch_sise\": 1}",
            "2:17: ModelConfig has no field max_batch_sise; did you mean max_batch_size?",
        ),
        (r#"{"name":"a","name":"b"}"#, ": name is given twice"),
        (r#"{"name":7}"#, ": name: expected a string, found 7"),
        (r#"{"max_batch_size":"x"}"#, ": max_batch_size: expected an integer, found \"x\""),
        (
            r#"{"max_batch_size":3000000000}"#,
            ": max_batch_size: 3000000000 is not between -2147483648 and 2147483647",
        ),
        (r#"{"input":7}"#, "input: expected an object (ModelInput), found 7"),
        (r#"{"instance_group":{"gpus":{}}}"#, "invalid type: map, expected a list for gpus"),
        (r#"{"parameters":[]}"#, "invalid type: sequence, expected an object for parameters"),
        (
            r#"{"input":[{"data_type":"TYPE_FP31"}]}"#,
            "data_type: DataType has no value TYPE_FP31; did you mean TYPE_FP32?",
        ),
        (
            r#"{"dynamic_batching":{},"sequence_batching":{}}"#,
            "sequence_batching and dynamic_batching exclude each other",
        ),
    ] {
        let got = parse::<ModelConfig>(text).unwrap_err().to_string();
        assert!(got.contains(want), "{text}: {got}");
    }
}

#[test]
fn deep_text_is_refused_and_nothing_worse() {
    let text = "[".repeat(100_000);
    assert!(parse::<ModelConfig>(&text).is_err());
    let text = r#"{"input":"#.repeat(100_000);
    assert!(parse::<ModelConfig>(&text).is_err());
}
