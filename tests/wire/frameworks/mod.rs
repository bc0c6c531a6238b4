//! One model family in four formats: ONNX, TensorFlow GraphDef and SavedModel, Caffe2 NetDef. All
//! pass the same checks with the clients of v1 and v2, so that they agree with each other.

mod caffe2;
mod completion_with_tensorflow;
mod errors_with_tensorflow;
mod graph_defs_with_tensorflow;
mod init_ops_with_tensorflow;
mod missing_library;
mod onnx_declarations;
mod pytorch;
mod pytorch_safety;
mod recognition;
mod releases_with_tensorflow;
mod with_openvino;
mod with_tensorflow;
mod with_trees;

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use trtserver_tests::{Running, Server, python_v1, python_v2, root};

/// Runs the checks on the models of this folder. `without`: types and models that the framework
/// does not have; `flags`: of the server.
fn serves_the_family(folder: &str, without: &[&str], flags: &[&str]) {
    serves_prepared_family(folder, without, flags, &|server| server);
}

/// As [`serves_the_family`]; `prepare` changes the copies of the models.
fn serves_prepared_family(
    folder: &str,
    without: &[&str],
    flags: &[&str],
    prepare: &dyn Fn(Server) -> Server,
) {
    let new = || flags.iter().fold(Server::new(), |server, flag| server.flag(flag));
    let folder = Path::new("tests/models").join(folder);
    let without = without.iter().flat_map(|kind| ["--without", kind]);
    let arguments = |class| ["-k", class].into_iter().chain(without.clone()).collect::<Vec<_>>();

    let mut server = new().copy_models(&folder).copy_models(folder.join("sequences"));
    if server.models().join("scalar").exists() {
        // Its configuration is refused.
        server = server.without("scalar");
    }
    let server = prepare(server).start();
    python_v2(&server, "v2_frameworks.py", &arguments("Free"));
    python_v1(&server, "v1_frameworks.py", &arguments("Free"));
    assert!(server.stop().success());

    let server = new()
        .env("TRTSERVER_DELAY_SCHEDULER", "8")
        .copy_model(folder.join("addsub_fp32_dynamic"))
        .copy_model(folder.join("sum_fp32"));
    let server = prepare(server).start();
    python_v2(&server, "v2_frameworks.py", &arguments("Held"));
    python_v1(&server, "v1_frameworks.py", &arguments("Held"));
    assert!(server.stop().success());
}

#[test]
fn onnx() {
    serves_the_family("", &[], &[]);
}

#[test]
fn digits_of_onnx_and_netdef() {
    let server = Server::new()
        .copy_model("examples/models/digits")
        .copy_models("examples/models-caffe2")
        .start();
    digits_agree(&server, &["digits_netdef"]);
    assert!(server.stop().success());
}

/// The scores of one picture.
#[track_caller]
fn scores(server: &Running, model: &str) -> Vec<f64> {
    let picture = fs::read(root().join("examples/digits/seven.f32")).unwrap_or_default();
    let pixels = picture.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let input = json!({ "name": "IMAGE", "datatype": "FP32", "shape": [1, 1, 8, 8],
        "data": pixels.collect::<Vec<_>>() });
    let body = json!({ "inputs": [input] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    let scores = response.json()["outputs"][0]["data"].clone();
    scores.as_array().map(|all| all.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
}

/// These models give the same scores as the ONNX model `digits`, within rounding.
#[track_caller]
fn digits_agree(server: &Running, others: &[&str]) {
    let expected = scores(server, "digits");
    assert!(expected.len() == 10 && expected[7] > 0.9, "{expected:?}");
    for model in others {
        let got = scores(server, model);
        let close = got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(got.len() == 10 && close, "{model}: {got:?}, expected {expected:?}");
    }
}
