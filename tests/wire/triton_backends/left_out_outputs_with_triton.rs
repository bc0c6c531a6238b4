//! A step leaves out an output: the steps after it run without that input where it is optional, and
//! the ensemble's response leaves out what no step wrote, as in Triton itself.

use serde_json::{Map, Value, json};
use trtserver_tests::triton::Triton;
use trtserver_tests::{Repository, Response, Server};

/// Sends OUT and never EXTRA.
const MAYBE: &str = "
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        def response(request):
            values = pb_utils.get_input_tensor_by_name(request, 'IN').as_numpy()
            return pb_utils.InferenceResponse([pb_utils.Tensor('OUT', values)])
        return [response(request) for request in requests]
";
/// Sends the number of its inputs.
const COUNT: &str = "
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        def response(request):
            count = np.array([len(request.inputs())], dtype=np.float32)
            return pb_utils.InferenceResponse([pb_utils.Tensor('N', count)])
        return [response(request) for request in requests]
";

/// `NAME` or `NAME?` for an optional one.
fn tensors(side: &str, names: &str) -> String {
    let one = |word: &str| {
        let name = word.trim_end_matches('?');
        let optional = if word.ends_with('?') { "optional: true" } else { "" };
        format!("{side} {{ name: '{name}' data_type: TYPE_FP32 dims: [ 1 ] {optional} }}\n")
    };
    names.split_whitespace().map(one).collect()
}

fn python(inputs: &str, outputs: &str) -> String {
    let tensors = tensors("input", inputs) + &tensors("output", outputs);
    format!("backend: 'python'\n{tensors}instance_group [ {{ kind: KIND_CPU count: 1 }} ]\n")
}

/// Steps as `model INPUT=tensor … > OUTPUT=tensor …`.
fn ensemble(outputs: &str, steps: &[&str]) -> String {
    let map = |field: &str, pairs: &str| -> String {
        let pairs = pairs.split_whitespace().filter_map(|pair| pair.split_once('='));
        let one =
            |(key, value): (&str, &str)| format!("{field} {{ key: '{key}' value: '{value}' }} ");
        pairs.map(one).collect()
    };
    let step = |text: &&str| -> String {
        let (model, maps) = text.split_once(' ').unwrap_or_else(|| panic!("{text}"));
        let (reads, writes) = maps.split_once('>').unwrap_or_else(|| panic!("{text}"));
        let maps = map("input_map", reads) + &map("output_map", writes);
        format!("step {{ model_name: '{model}' model_version: -1 {maps} }}\n")
    };
    let tensors = tensors("input", "IN") + &tensors("output", outputs);
    let steps: String = steps.iter().map(step).collect();
    format!("platform: 'ensemble'\n{tensors}ensemble_scheduling {{ {steps} }}\n")
}

/// Each with the outputs that it has, or the text of its error.
fn ensembles() -> Vec<(&'static str, String, Result<Value, &'static str>)> {
    let both = "maybe IN=IN > OUT=o EXTRA=x";
    let missing = "expected 1 inputs but got 0 inputs for model 'need'";
    vec![
        ("joined", ensemble("N", &[both, "join A=o B=x > N=N"]), Ok(json!({ "N": [1.0] }))),
        (
            "nothing",
            ensemble("N", &["maybe IN=IN > EXTRA=x", "join B=x > N=N"]),
            Ok(json!({ "N": [0.0] })),
        ),
        (
            "some",
            ensemble("OUT EXTRA", &["maybe IN=IN > OUT=OUT EXTRA=EXTRA"]),
            Ok(json!({ "OUT": [3.0] })),
        ),
        ("none", ensemble("EXTRA", &["maybe IN=IN > EXTRA=EXTRA"]), Ok(json!({}))),
        ("needed", ensemble("N", &["maybe IN=IN > EXTRA=x", "need A=x > N=N"]), Err(missing)),
        ("chained", ensemble("N", &[both, "need A=x > N=n", "join A=o B=n > N=N"]), Err(missing)),
    ]
}

#[track_caller]
fn check(name: &str, from: &str, response: &Response, expected: &Result<Value, &str>) {
    let body = response.json();
    match expected {
        Ok(outputs) => {
            assert_eq!(response.status, 200, "{from}, {name}: {body}");
            let found: Map<String, Value> = body["outputs"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|o| (o["name"].as_str().unwrap_or_default().to_owned(), o["data"].clone()))
                .collect();
            assert_eq!(Value::Object(found), *outputs, "{from}, {name}: {body}");
        }
        Err(text) => {
            assert_eq!(response.status, 400, "{from}, {name}: {body}");
            let found = body["error"].as_str().unwrap_or_default();
            assert!(found.contains(text), "{from}, {name}: {body}");
        }
    }
}

#[test]
fn ensembles_go_on_without_left_out_outputs() {
    let ensembles = ensembles();
    let models = [
        ("maybe", python("IN", "OUT EXTRA"), Some(MAYBE)),
        ("join", python("A? B?", "N"), Some(COUNT)),
        ("need", python("A", "N"), Some(COUNT)),
    ]
    .into_iter()
    .chain(ensembles.iter().map(|(name, config, _)| (*name, config.clone(), None)));
    let repository = Repository::new();
    let mut server = Server::new().triton_start_line().backend_dir(Triton::backends());
    for (name, config, script) in models {
        repository.model(name, &config);
        server = server.model(name, &config);
        if let Some(script) = script {
            let path = format!("{name}/1/model.py");
            repository.file(&path, script);
            server = server.file(&path, script);
        }
    }
    let triton = Triton::start(repository.path(), &Triton::backends(), &[]);
    let server = server.start();
    let body = json!({
        "inputs": [{ "name": "IN", "datatype": "FP32", "shape": [1], "data": [3.0] }]
    });
    for (name, _, expected) in &ensembles {
        let path = format!("/v2/models/{name}/infer");
        let (ours, theirs) =
            (server.post(&path, &[], body.to_string()), triton.post(&path, body.to_string()));
        check(name, "Triton", &theirs, expected);
        check(name, "this server", &ours, expected);
    }
    assert!(server.stop().success());
}
