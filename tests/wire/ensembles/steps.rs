//! Batching and sequences in the steps of ensembles.

use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, batcher, flag, sequences};
use trtserver_tests::{Response, Server};

/// An inference over HTTP v2; `data` are the members of `inputs`.
fn inference(model: &str, parameters: &str, inputs: &str) -> Vec<u8> {
    let json = format!(r#"{{"parameters":{{{parameters}}},"inputs":[{inputs}]}}"#);
    request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes())
}

#[track_caller]
fn output(response: &Response, name: &str) -> serde_json::Value {
    assert_eq!(response.status, 200, "{}", response.text());
    let outputs = response.json()["outputs"].as_array().cloned().unwrap_or_default();
    let output = outputs.iter().find(|output| output["name"] == name);
    output.unwrap_or_else(|| panic!("no {name}: {}", response.text()))["data"].clone()
}

#[test]
fn ensemble_and_direct_requests_share_batches() {
    let tensor = |side: &str, name: &str, kind: &str, dims: &str| {
        format!("{side} {{ name: '{name}' data_type: TYPE_{kind} dims: {dims} }}\n")
    };
    let maps = |field: &str, names: &[&str]| -> String {
        names.iter().map(|name| format!("{field} {{ key: '{name}' value: '{name}' }} ")).collect()
    };
    let ensemble = [
        "name: 'through' platform: 'ensemble' max_batch_size: 8\n".to_owned(),
        tensor("input", "INPUT0", "FP32", "-1") + &tensor("input", "INPUT1", "FP32", "-1"),
        tensor("output", "OUTPUT0", "FP32", "-1") + &tensor("output", "BATCH", "INT32", "2"),
        "ensemble_scheduling { step { model_name: 'batching' model_version: -1\n".to_owned(),
        maps("input_map", &["INPUT0", "INPUT1"]) + &maps("output_map", &["OUTPUT0", "BATCH"]),
        "} }\n".to_owned(),
    ]
    .concat();
    let dynamic = format!(
        "dynamic_batching {{ preferred_batch_size: 8 max_queue_delay_microseconds: {NEVER} }}\n"
    );
    let server = Server::new()
        .model("batching", batcher("batching", 8, &dynamic))
        .model("through", ensemble)
        .start();
    // Rounds of eight concurrent requests, every second one to the step's model directly.
    for _ in 0..5 {
        let mut connections: Vec<_> = (0..8).map(|_| server.connect()).collect();
        for (i, connection) in connections.iter_mut().enumerate() {
            let input = |name: &str| {
                format!(r#"{{"name":"{name}","datatype":"FP32","shape":[1,1],"data":[{i}]}}"#)
            };
            let inputs = [input("INPUT0"), input("INPUT1")].join(",");
            connection.send(inference(["through", "batching"][i % 2], "", &inputs));
        }
        for (i, connection) in connections.iter_mut().enumerate() {
            let response = connection.response();
            assert_eq!(output(&response, "OUTPUT0"), serde_json::json!([i as f64]));
            assert_eq!(output(&response, "BATCH"), serde_json::json!([8, 8]));
        }
    }
    assert!(server.stop().success());
}

/// Sequences belong to the step's model, for ensemble and direct requests alike.
#[test]
fn sequence_may_use_ensemble_and_step_in_turn() {
    let scheduling = sequences(NEVER, "direct { }", &[flag("START", "int32")]);
    let ensemble = "name: 'through' platform: 'ensemble' max_batch_size: 4\n\
        input { name: 'INPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        output { name: 'OUTPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        ensemble_scheduling { step { model_name: 'summing' model_version: -1\n\
        input_map { key: 'INPUT0' value: 'INPUT0' } output_map { key: 'OUTPUT0' value: 'OUTPUT0' } } }";
    let server = Server::new()
        .model("summing", accumulator("summing", 4, "slot", &scheduling))
        .model("through", ensemble)
        .start();
    let mut sum = 0;
    for i in 1..=6 {
        sum += i;
        let parameters =
            format!(r#""sequence_id":"a","sequence_start":{},"sequence_end":{}"#, i == 1, i == 6);
        let input = format!(r#"{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[{i}]}}"#);
        let response = server.send(inference(["through", "summing"][i % 2], &parameters, &input));
        assert_eq!(output(&response, "OUTPUT0"), serde_json::json!([sum]));
    }
    assert!(server.stop().success());
}
