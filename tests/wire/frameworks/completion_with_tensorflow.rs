//! Completion of configurations of TensorFlow models: from a signature, and from a graph's
//! placeholders and ends.

#![allow(clippy::expect_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::fs;
use trtserver_tests::tensorflow_files::{placeholder, typed, versions};
use trtserver_tests::{Running, Server, root};

fn server() -> Server {
    Server::new().flag("--strict-model-config=false")
}

fn committed(file: &str) -> Vec<u8> {
    fs::read(root().join("tests/models").join(file)).expect("a committed model")
}

fn config(server: &Running, model: &str) -> Value {
    server.get(&format!("/v2/models/{model}/config")).json()
}

/// Name, type and dims of each tensor.
fn tensors(list: &Value) -> Value {
    let all = list.as_array().into_iter().flatten();
    all.map(|tensor| json!([tensor["name"], tensor["data_type"], tensor["dims"]])).collect()
}

fn answers(server: &Running, model: &str) {
    let values: Vec<u32> = (0..16).collect();
    let input =
        |name| json!({ "name": name, "datatype": "FP32", "shape": [1, 16], "data": values });
    let body = json!({ "inputs": [input("INPUT0"), input("INPUT1")] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
}

#[test]
fn tensors_and_batch_size_are_completed() {
    let graph = committed("graphdef/addsub_fp32/1/model.graphdef");
    let saved = committed("savedmodel/addsub_fp32/1/model.savedmodel/saved_model.pb");
    let server = server()
        .model("graph", "platform: \"tensorflow_graphdef\"")
        .file("graph/1/model.graphdef", graph)
        // Neither a configuration nor the default name.
        .file("saved/1/exported/saved_model.pb", saved)
        .start();
    for model in ["graph", "saved"] {
        let config = config(&server, model);
        assert_eq!(config["max_batch_size"], 1, "{config}");
        assert!(config["dynamic_batching"].is_null(), "{config}");
        let inputs = json!([["INPUT0", "TYPE_FP32", [16]], ["INPUT1", "TYPE_FP32", [16]]]);
        assert_eq!(tensors(&config["input"]), inputs, "{config}");
        let outputs = json!([["OUTPUT0", "TYPE_FP32", [16]], ["OUTPUT1", "TYPE_FP32", [16]]]);
        assert_eq!(tensors(&config["output"]), outputs, "{config}");
        answers(&server, model);
    }
    assert!(server.stop().success());
}

#[test]
fn setting_is_the_completed_batch_size() {
    let server = server()
        .flag("--backend-config=tensorflow,default-max-batch-size=4")
        .model("saved", "")
        .file(
            "saved/1/model.savedmodel/saved_model.pb",
            committed("savedmodel/addsub_fp32/1/model.savedmodel/saved_model.pb"),
        )
        .start();
    let config = config(&server, "saved");
    assert_eq!(config["max_batch_size"], 4, "{config}");
    assert!(config["dynamic_batching"].is_object(), "{config}");
    answers(&server, "saved");
    assert!(server.stop().success());
}

/// The positions of values other than 0: not as many rows as the input has.
#[test]
fn rows_of_a_run_decide_whether_a_graph_batches() {
    const FLOAT: i64 = 1;
    let found = typed("found", "Where", &["x"], FLOAT);
    let graph = [placeholder("x", FLOAT, Some(&[-1, 8])), found, versions()].concat();
    let server = server()
        .flag("--backend-config=tensorflow,default-max-batch-size=4")
        .model("none", "platform: \"tensorflow_graphdef\"")
        .file("none/1/model.graphdef", &graph)
        .model("eight", "platform: \"tensorflow_graphdef\" max_batch_size: 8")
        .file("eight/1/model.graphdef", &graph)
        .start();
    let completed = config(&server, "none");
    assert_eq!(completed["max_batch_size"], 0, "{completed}");
    assert!(completed["dynamic_batching"].is_null(), "{completed}");
    server.wait_for_log(
        "model 'none': max_batch_size is completed as 0: a run of 2 rows of zeros returned output 'found' of shape [0,2]",
    );
    let infer = |model: &str, data: [usize; 8]| {
        let input = json!({ "name": "x", "datatype": "FP32", "shape": [1, 8], "data": data });
        let body = json!({ "inputs": [input] }).to_string();
        server.post(&format!("/v2/models/{model}/infer"), &[], body)
    };
    let only = |at: usize| std::array::from_fn(|n| usize::from(n == at));
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (infer, only) = (&infer, &only);
            scope.spawn(move || {
                for _ in 0..20 {
                    let response = infer("none", only(client));
                    assert_eq!(response.json()["outputs"][0]["data"], json!([0, client]));
                }
            });
        }
    });
    let refused = infer("eight", [1; 8]).error_text();
    let expected = "model 'eight', output 'found': expected a first dimension of 1, the number of rows of the run, found \
                    shape [8,2]";
    assert!(refused.contains(expected), "{refused}");
    assert!(server.stop().success());
}

/// TensorFlow reads the text form; its signature is known once the model is loaded.
#[test]
fn signature_of_a_saved_model_in_text_is_completed() {
    let text = r#"
        saved_model_schema_version: 1
        meta_graphs {
          meta_info_def { tags: "serve" }
          graph_def {
            node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
            node { name: "b" op: "Identity" input: "a" attr { key: "T" value { type: DT_STRING } } }
            versions { producer: 1882 }
          }
          signature_def {
            key: "only"
            value {
              inputs { key: "x" value { name: "a:0" dtype: DT_STRING tensor_shape { dim { size: 2 } } } }
              outputs { key: "y" value { name: "b:0" dtype: DT_STRING tensor_shape { dim { size: 2 } } } }
            }
          }
        }"#;
    let server = server()
        .model("text", "platform: \"tensorflow_savedmodel\"")
        .file("text/1/model.savedmodel/saved_model.pbtxt", text)
        .start();
    let config = config(&server, "text");
    assert_eq!(config["max_batch_size"], 0, "{config}");
    assert_eq!(tensors(&config["input"]), json!([["x", "TYPE_STRING", [2]]]), "{config}");
    let body = r#"{"inputs":[{"name":"x","datatype":"BYTES","shape":[2],"data":["one",""]}]}"#;
    let response = server.post("/v2/models/text/infer", &[], body);
    assert_eq!(response.json()["outputs"][0]["data"], json!(["one", ""]), "{}", response.text());
    assert!(server.stop().success());
}

#[test]
fn what_cannot_be_completed_is_an_error() {
    const FLOAT: i64 = 1;
    const COMPLEX: i64 = 8;
    let graph = |data_type, dims: Option<&[i64]>| {
        let y = typed("y", "Identity", &["x"], data_type);
        [placeholder("x", data_type, dims), y, versions()].concat()
    };
    let platform = "platform: \"tensorflow_graphdef\"\n";
    let server = server()
        .flag("--exit-on-error=false")
        .flag("--strict-readiness=false")
        .model("rank", platform)
        .file("rank/1/model.graphdef", graph(FLOAT, None))
        .model("complex", platform)
        .file("complex/1/model.graphdef", graph(COMPLEX, Some(&[2])))
        .model("batch", format!("{platform}max_batch_size: 8"))
        .file("batch/1/model.graphdef", graph(FLOAT, Some(&[2, 3])))
        .start();
    let index = server.post("/v2/repository/index", &[], "").json();
    for (model, why) in [
        (
            "rank",
            "input 'x' has an unknown number of dimensions, which no configuration can express",
        ),
        ("complex", "input 'x' has elements of complex64, which no configuration can express"),
        (
            "batch",
            "model does not support batching while non-zero max_batch_size is specified: the first dimension of input 'x' of \
             shape [2,3] is not dynamic",
        ),
    ] {
        let all = index.as_array().expect("a list");
        let entry = all.iter().find(|entry| entry["name"] == model).expect("the model");
        let reason = entry["reason"].as_str().unwrap_or_default();
        assert_eq!(reason, format!("autofill failed for model '{model}': {why}"));
    }
    assert!(server.stop().success());
}

#[test]
fn inputs_are_completed_beside_configured_outputs() {
    const FLOAT: i64 = 1;
    let graph = [
        placeholder("x", FLOAT, Some(&[2])),
        typed("inner", "Neg", &["x"], FLOAT),
        typed("y", "Neg", &["inner"], FLOAT),
        versions(),
    ];
    let output = "output { name: \"inner:0\" data_type: TYPE_FP32 dims: [ 2 ] }";
    let server = server()
        .model("inner", format!("platform: \"tensorflow_graphdef\" {output}"))
        .file("inner/1/model.graphdef", graph.concat())
        .start();
    let config = config(&server, "inner");
    assert_eq!(tensors(&config["input"]), json!([["x", "TYPE_FP32", [2]]]), "{config}");
    let body = r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,-2]}]}"#;
    let response = server.post("/v2/models/inner/infer", &[], body);
    let output = &response.json()["outputs"][0];
    assert_eq!((&output["name"], &output["data"]), (&json!("inner:0"), &json!([-1.0, 2.0])));
    assert!(server.stop().success());
}
