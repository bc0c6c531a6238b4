//! Unit tests of `autocomplete.rs`.

use super::*;

fn config(max_batch_size: i32, inputs: &[&str], outputs: &[&str]) -> ModelConfig {
    ModelConfig {
        max_batch_size,
        input: inputs
            .iter()
            .map(|n| ModelInput { name: (*n).into(), ..Default::default() })
            .collect(),
        output: outputs
            .iter()
            .map(|n| ModelOutput { name: (*n).into(), ..Default::default() })
            .collect(),
        ..Default::default()
    }
}

#[test]
fn merge_keeps_declared_fields() {
    for (given, patch, want) in [
        (config(0, &[], &[]), config(4, &["I"], &["O"]), config(4, &["I"], &["O"])),
        (config(0, &["A"], &[]), config(4, &["I"], &["O"]), config(0, &["A"], &["O"])),
        (config(2, &[], &["B"]), config(4, &["I"], &["O"]), config(2, &["I"], &["B"])),
    ] {
        let mut got = given;
        merge_patch(&mut got, patch).unwrap();
        assert_eq!(got, want);
    }
}

fn parsed(text: &str) -> ModelConfig {
    trtserver_proto::text::parse(text).unwrap()
}

#[test]
fn merge_adds_every_field_that_is_missing() {
    let patch = "max_batch_size: 4 model_transaction_policy { decoupled: true } dynamic_batching { } \
                 instance_group [ { count: 2 } ] version_policy { all { } } default_model_filename: \"m\" \
                 parameters { key: \"k\" value { string_value: \"patch\" } }";
    let mut empty = ModelConfig::default();
    merge_patch(&mut empty, parsed(patch)).unwrap();
    assert_eq!(empty, parsed(patch));
    let ours = "max_batch_size: 2 model_transaction_policy { } sequence_batching { } \
                instance_group [ { count: 3 } ] version_policy { latest { num_versions: 1 } } \
                default_model_filename: \"n\" parameters { key: \"k\" value { string_value: \"ours\" } }";
    let mut given = parsed(ours);
    merge_patch(&mut given, parsed(patch)).unwrap();
    assert_eq!(given, parsed(ours));
    // Without a batch size there is no dynamic batching.
    let mut unbatched = config(0, &["A"], &["B"]);
    merge_patch(&mut unbatched, parsed(patch)).unwrap();
    assert_eq!((unbatched.max_batch_size, unbatched.scheduling_choice), (0, None));
}

#[test]
fn merge_refuses_fields_that_were_decided_before() {
    for (patch, part) in [
        ("name: \"other\"", "'name' to 'other', which is 'm'"),
        ("backend: \"other\"", "'backend'"),
        ("platform: \"other\"", "'platform'"),
        ("ensemble_scheduling { }", "'ensemble_scheduling'"),
        ("parameters { key: \"isolation\" value { string_value: \"process\" } }", "'isolation'"),
        ("parameters { key: \"backend_version\" value { } }", "'backend_version'"),
    ] {
        let mut ours = parsed("name: \"m\" backend: \"b\"");
        let why = merge_patch(&mut ours, parsed(patch)).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn declared_tensors_keep_what_they_say() {
    let mut config = parsed(
        "input [ { name: 'I' dims: 3 optional: true }, { name: 'X' } ] output { name: 'O' data_type: TYPE_INT8 dims: 1 }",
    );
    let inputs = take_incomplete(&mut config.input, input_parts);
    assert!(
        config.input.is_empty() && take_incomplete(&mut config.output, output_parts).is_empty()
    );
    let patch = "input [ { name: 'J' }, { name: 'I' data_type: TYPE_FP32 dims: -1 } ]";
    merge_patch(&mut config, parsed(patch)).unwrap();
    fill_tensors(&mut config.input, inputs, input_parts);
    let want = "input [ { name: 'I' data_type: TYPE_FP32 dims: 3 optional: true }, { name: 'X' } ] \
                output { name: 'O' data_type: TYPE_INT8 dims: 1 }";
    assert_eq!(config, parsed(want));
}

#[test]
fn completed_configuration_replaces_what_backends_decide() {
    let given = r#"name: "m" max_batch_size: 4 input [ { name: "A" data_type: TYPE_FP32 dims: 1 } ] sequence_batching { }"#;
    let mut config = parsed(given);
    let completed = r#"name: "other" max_batch_size: 8 input [ { name: "B" data_type: TYPE_FP32 dims: 2 } ]
        output [ { name: "C" data_type: TYPE_FP32 dims: 2 } ] dynamic_batching { } model_transaction_policy { decoupled: true }"#;
    replace_completed(&mut config, parsed(completed)).unwrap();
    let expected = r#"name: "m" max_batch_size: 8 input [ { name: "B" data_type: TYPE_FP32 dims: 2 } ]
        output [ { name: "C" data_type: TYPE_FP32 dims: 2 } ] sequence_batching { } model_transaction_policy { decoupled: true }"#;
    assert_eq!(config, parsed(expected));
    let why = replace_completed(&mut config, parsed("ensemble_scheduling { }")).unwrap_err();
    assert_eq!(why, "sets 'ensemble_scheduling'");
}
