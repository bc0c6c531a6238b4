//! Completion of configurations from ONNX files: batching, and tensors without elements.

use serde_json::{Value, json};
use trtserver_tests::{Server, root};

/// ONNX's own operator tests, served without configurations. A dimension of 0 is completed as a
/// variable one.
#[test]
fn operator_tests_with_empty_tensors_are_served() {
    let folder = root().join("tests/models/onnx_operators");
    let mut server = Server::new().flag("--strict-model-config=false");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let case = std::fs::read_to_string(path.join("case.json")).unwrap();
        let case: Value = serde_json::from_str(&case).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        server = server.copy_model(path.strip_prefix(root()).unwrap());
        cases.push((name, case));
    }
    assert!(cases.len() > 3);
    let server = server.start();
    for (name, case) in cases {
        let body = json!({ "inputs": case["inputs"] }).to_string();
        let response = server.post(&format!("/v2/models/{name}/infer"), &[], body);
        assert_eq!(response.status, 200, "{name}: {}", response.text());
        let outputs = response.json()["outputs"].as_array().unwrap().clone();
        let expected = case["outputs"].as_array().unwrap();
        assert_eq!(outputs.len(), expected.len(), "{name}");
        for expected in expected {
            let got = outputs.iter().find(|output| output["name"] == expected["name"]);
            assert_eq!(got, Some(expected), "{name}");
        }
    }
    let config = server.get("/v2/models/reduce_sum_empty_set/config").json();
    assert_eq!(config["input"][0]["dims"], json!([2, -1, 4]), "{config}");
    // The file still decides which shapes run.
    let wrong = json!({ "inputs": [
        { "name": "data", "datatype": "FP32", "shape": [2, 1, 4], "data": [0, 0, 0, 0, 0, 0, 0, 0] },
        { "name": "axes", "datatype": "INT64", "shape": [1], "data": [1] },
    ] });
    let path = "/v2/models/reduce_sum_empty_set/infer";
    let refused = server.post(path, &[], wrong.to_string()).error_text();
    assert!(refused.contains("Expected [2,0,4], got [2,1,4]"), "{refused}");
    assert!(server.stop().success());
}

fn addsub() -> Vec<u8> {
    let path = root().join("tests/models/addsub_fp32/1/model.onnx");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// As in v1.x: a model that can batch gets a batch size of 1, and no scheduler.
#[test]
fn start_line_of_trtis_completes_a_batch_size_of_1() {
    let complete = || {
        let server = Server::new().flag("--strict-model-config=false");
        server.model("none", "").file("none/1/model.onnx", addsub())
    };
    for (flags, size) in [
        (&[][..], 1),
        (&["--backend-config=default-max-batch-size=3"], 3),
        (&["--backend-config=onnxruntime,default-max-batch-size=6"], 6),
    ] {
        let server = flags.iter().fold(complete(), |server, flag| server.flag(*flag)).start();
        let config = server.get("/v2/models/none/config").json();
        assert_eq!(config["max_batch_size"], size, "{flags:?}: {config}");
        assert_eq!(config["dynamic_batching"].is_null(), size == 1, "{flags:?}: {config}");
        assert!(server.stop().success());
    }
}

/// As Triton: a model that batches gets dynamic batching, unless its tensors or a scheduler are
/// configured.
#[test]
fn models_that_batch_get_dynamic_batching() {
    let addsub = addsub();
    let mut server = Server::new().triton_start_line();
    for (model, config) in [
        ("none", ""),
        ("size_given", "max_batch_size: 16"),
        ("one_row", "max_batch_size: 1"),
        ("sequences", "max_batch_size: 2 sequence_batching { direct { } }"),
        // TRTIS completes declared tensors without type or dims.
        ("named", "input [ { name: \"INPUT1\" }, { name: \"INPUT0\" data_type: TYPE_FP32 } ]"),
    ] {
        server = server.model(model, config).file(&format!("{model}/1/model.onnx"), &addsub);
    }
    let server = server.copy_model("tests/models/addsub_fp32").start();
    for (model, size, preferred) in [
        ("none", 4, json!([4])),
        ("named", 4, json!([4])),
        ("size_given", 16, json!([16])),
        ("one_row", 1, Value::Null),
        ("sequences", 2, Value::Null),
        ("addsub_fp32", 8, Value::Null),
    ] {
        let config = server.get(&format!("/v2/models/{model}/config")).json();
        assert_eq!(config["max_batch_size"], size, "{model}: {config}");
        let dynamic = &config["dynamic_batching"];
        assert_eq!(dynamic["preferred_batch_size"], preferred, "{model}: {config}");
    }
    let named = server.get("/v2/models/named/config").json();
    assert_eq!(named["input"][0]["name"], "INPUT1", "{named}");
    assert_eq!(named["input"][0]["data_type"], "TYPE_FP32", "{named}");
    assert_eq!(named["input"][1]["dims"], json!([16]), "{named}");
    assert!(server.stop().success());
}
