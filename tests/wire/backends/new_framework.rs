//! A backend of a framework that the host does not know: all that the host must know, the backend
//! declares.

use serde_json::{Value, json};
use trtserver_tests::{Running, Server, compile_c, folder};

/// Rows whose second feature is below 0.5 get 10, others 20.
const TREE: &str = "1 0.5 10 20";

const TENSORS: &str = "max_batch_size: 4
    input [ { name: \"INPUT\" data_type: TYPE_FP32 dims: [ 2 ] } ]
    output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n";

fn predict(server: &Running, model: &str) -> Value {
    let input = json!({
        "name": "INPUT", "datatype": "FP32", "shape": [3, 2], "data": [0.0, 0.4, 0.9, 0.5, 0.1, 0.0],
    });
    let body = json!({ "inputs": [input] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    response.json()["outputs"][0]["data"].clone()
}

#[test]
fn framework_of_any_name_is_served() {
    let dir = folder();
    compile_c("tests/plugins/lightgbm/lightgbm.cpp", dir.path(), "lightgbm");
    let settings = "optimization { graph { level: 1 } cuda { graphs: true } }
        instance_group { kind: KIND_CPU profile: \"fast\" }";
    let server = Server::new()
        .backend_dir(dir.path())
        .flag("--strict-model-config=false")
        .file("bare/1/model.lgb", TREE)
        .model("platform", "platform: \"lightgbm_text\"")
        .file("platform/1/model.lgb", TREE)
        .model(
            "named",
            format!("backend: \"lightgbm\" default_model_filename: \"t.txt\" {TENSORS}"),
        )
        .file("named/1/t.txt", TREE)
        .model("settings", format!("backend: \"lightgbm\" {TENSORS} {settings}"))
        .file("settings/1/model.lgb", TREE)
        .start();
    for (model, file, rows) in [
        ("bare", "model.lgb", 8),
        ("platform", "model.lgb", 8),
        ("named", "t.txt", 4),
        ("settings", "model.lgb", 4),
    ] {
        let config = server.get(&format!("/v2/models/{model}/config")).json();
        let completed = ["platform", "backend", "default_model_filename", "max_batch_size"];
        let expected = [json!("lightgbm_text"), json!("lightgbm"), json!(file), json!(rows)];
        assert_eq!(completed.map(|field| config[field].clone()), expected, "{model}");
        assert_eq!(predict(&server, model), json!([10.0, 20.0, 10.0]), "{model}");
    }
    // It declares that it uses profiles and graph levels, and no CUDA graphs.
    let log = server.log();
    let unused = "'optimization.cuda.graphs' has no effect: backend 'lightgbm' does not use it";
    assert!(log.contains(unused), "{log}");
    assert!(!log.contains("'optimization.graph.level' has no effect"), "{log}");
    assert!(server.stop().success());
}

/// With the start line of TRTIS, which completes no configuration.
#[test]
fn framework_of_any_name_is_served_with_strict_configurations() {
    let dir = folder();
    compile_c("tests/plugins/lightgbm/lightgbm.cpp", dir.path(), "lightgbm");
    let shape = TENSORS.replace("dims: [ 2 ]", "dims: [ 2 ] is_shape_tensor: true");
    let server = Server::new()
        .backend_dir(dir.path())
        .flag("--exit-on-error=false")
        .model("m", format!("name: \"m\" platform: \"lightgbm_text\" {TENSORS}"))
        .file("m/1/model.lgb", TREE)
        .model("shape", format!("name: \"shape\" platform: \"lightgbm_text\" {shape}"))
        .file("shape/1/model.lgb", TREE)
        .start();
    assert_eq!(predict(&server, "m"), json!([10.0, 20.0, 10.0]));
    let log = server.log();
    let refused = "shape tensors are only supported for TensorRT platform for shape";
    assert!(log.contains(refused), "{log}");
    assert!(server.stop().success());
}
