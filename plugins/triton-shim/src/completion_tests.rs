//! Unit tests of `completion.rs`.

use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn backend_decides_tensors_batch_size_and_policy_with_all_defaults() {
    let config = map(json!({
        "name": "m", "max_batch_size": 0, "input": [], "output": [{"name": "KEPT", "dims": [1]}],
        "parameters": {}
    }));
    let given = map(json!({
        "name": "other", "max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 5},
        "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [4]}],
        "model_transaction_policy": {}, "parameters": {"key": {"string_value": "ignored"}}
    }));
    let decided = decided_fields(&config, given);
    let names: Vec<&str> = decided.keys().map(String::as_str).collect();
    let expected =
        ["dynamic_batching", "input", "max_batch_size", "model_transaction_policy", "output"];
    assert_eq!(names, expected);
    assert_eq!(decided["max_batch_size"], 8);
    assert_eq!(decided["input"][0]["optional"], false);
    assert_eq!(decided["input"][0]["format"], "FORMAT_NONE");
    assert_eq!(decided["output"][0]["name"], "KEPT");
    assert_eq!(decided["dynamic_batching"]["max_queue_delay_microseconds"], 5);
    assert_eq!(decided["dynamic_batching"]["preferred_batch_size"], json!([]));
    assert_eq!(decided["model_transaction_policy"]["decoupled"], false);
}

#[test]
fn scheduler_of_the_configuration_stays() {
    let config = map(json!({"max_batch_size": 4, "sequence_batching": {}}));
    let decided =
        decided_fields(&config, map(json!({"dynamic_batching": {}, "max_batch_size": 2})));
    assert!(!decided.contains_key("dynamic_batching"));
    assert_eq!(decided["max_batch_size"], 2);
}

#[test]
fn models_without_tensors_are_named_in_the_log() {
    let line = missing_tensors(0, 0, "python", "m").unwrap();
    assert!(
        line.starts_with("model 'm': the configuration has neither inputs nor outputs"),
        "{line}"
    );
    assert_eq!(missing_tensors(0, 1, "python", "m"), None);
    assert_eq!(missing_tensors(1, 0, "python", "m"), None);
}
