//! Models that OpenVINO runs: the ONNX family with the clients of both generations, every format that
//! it reads, isolation, configurations of Triton's backend, and files that cannot be served.

#![allow(clippy::expect_used)] // the functions here are parts of tests

use super::{digits_agree, serves_prepared_family};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use trtserver_tests::isolated::process;
use trtserver_tests::{Running, Server, backends, folder, root};

/// Gives all models of a repository to this backend.
fn rewrite_platforms(models: &Path) {
    for entry in fs::read_dir(models).expect("the models") {
        let path = entry.expect("a model").path().join("config.pbtxt");
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let text = text.replace("platform: \"onnxruntime_onnx\"", "platform: \"openvino\"");
        fs::write(&path, text).expect("a configuration");
    }
}

/// The same files as with ONNX Runtime, and the same checks.
#[test]
fn serves_the_model_family_of_onnx() {
    let prepare = |server: Server| {
        rewrite_platforms(server.models());
        let strings = ["identity_string", "identity_string_nobatch"];
        let strings: Vec<_> =
            strings.into_iter().filter(|name| server.models().join(name).exists()).collect();
        strings.into_iter().fold(server, Server::without)
    };
    // The library computes integers of 64 bits in 32, and large ones are refused.
    serves_prepared_family("", &["string", "int64", "uint64"], &[], &prepare);
}

fn read(path: &str) -> Vec<u8> {
    fs::read(root().join("tests/models").join(path)).expect("a file")
}

/// Models in every format, most of them without a configuration. The start line of v1.x would
/// complete them with batches of one row.
fn formats(server: Server) -> Server {
    let backend = "backend: \"openvino\"";
    server
        .flag("--strict-model-config=false")
        .flag("--backend-config=openvino,default-max-batch-size=8")
        .copy_model("examples/models/digits")
        .copy_model("examples/models-openvino/digits_openvino")
        .copy_model("tests/models/openvino/lite")
        .copy_model("tests/models/openvino/paddle")
        .model("one_row", format!("{backend} max_batch_size: 8 dynamic_batching {{ }}"))
        .file("one_row/1/model.xml", read("openvino/one_row/1/model.xml"))
        .file("one_row/1/model.bin", read("openvino/one_row/1/model.bin"))
        .model("onnx", backend)
        .file("onnx/1/model.onnx", read("reshape/1/model.onnx"))
        .model("frozen", format!("{backend} default_model_filename: \"model.graphdef\""))
        .file("frozen/1/model.graphdef", read("graphdef/reshape/1/model.graphdef"))
        .model("saved", format!("{backend} default_model_filename: \"model.saved_model\""))
        .file(
            "saved/1/model.saved_model/saved_model.pb",
            read("savedmodel/reshape/1/model.savedmodel/saved_model.pb"),
        )
}

/// The only output of a model for two rows.
#[track_caller]
fn ask(server: &Running, model: &str, input: &str, width: usize, numbers: &[f64]) -> Value {
    let input = json!({ "name": input, "datatype": "FP32", "shape": [2, width], "data": numbers });
    let body = json!({ "inputs": [input] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    response.json()["outputs"][0]["data"].clone()
}

fn every_format_is_served(server: &Running) {
    digits_agree(server, &["digits_openvino"]);
    let numbers = [-1.0, 1.0, 2.0, 3.0, 4.0, 5.0, -6.0, 7.0];
    let lite = ask(server, "lite", "INPUT0", 4, &numbers);
    assert_eq!(lite, json!([-1.0, 2.0, 4.0, 6.0, 4.0, 6.0, -4.0, 10.0]));
    let paddle = ask(server, "paddle", "INPUT0", 4, &numbers);
    assert_eq!(paddle, json!([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 7.0]));
    let rows = ask(server, "one_row", "x", 4, &numbers);
    assert_eq!(rows, json!([5.25, 5.875, 6.5, 5.25, 6.5, 7.75]));
    let numbers: Vec<f64> = (0..12).map(f64::from).collect();
    let expected = ask(server, "onnx", "INPUT0", 6, &numbers);
    for (model, input) in [("frozen", "INPUT0:0"), ("saved", "INPUT0")] {
        assert_eq!(ask(server, model, input, 6, &numbers), expected, "{model}");
    }
}

#[test]
fn every_format() {
    let server = formats(Server::new()).start();
    every_format_is_served(&server);
    assert!(server.stop().success());
}

#[test]
fn every_format_with_isolation() {
    let server = formats(Server::new().flag("--backend-config=openvino,isolation=process")).start();
    every_format_is_served(&server);
    assert!(process(&server, "one_row").as_raw_nonzero().get() > 0);
    assert!(server.stop().success());
}

/// Eight requests are one run.
#[test]
fn requests_are_batched() {
    let server = Server::new()
        .env("TRTSERVER_DELAY_SCHEDULER", "8")
        .model(
            "one_row",
            "backend: \"openvino\" max_batch_size: 8 dynamic_batching { }
            input [ { name: \"x\" data_type: TYPE_FP32 dims: [ 4 ] } ]
            output [ { name: \"y\" data_type: TYPE_FP32 dims: [ 3 ] } ]",
        )
        .file("one_row/1/model.xml", read("openvino/one_row/1/model.xml"))
        .file("one_row/1/model.bin", read("openvino/one_row/1/model.bin"))
        .start();
    let one = |at: u32| {
        let data = [f64::from(at), 0.0, 0.0, 0.0];
        let input = json!({ "name": "x", "datatype": "FP32", "shape": [1, 4], "data": data });
        server.post("/v2/models/one_row/infer", &[], json!({ "inputs": [input] }).to_string())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|at| (at, scope.spawn(move || one(at)))).collect();
        for (at, thread) in all {
            let response = thread.join().expect("an answer");
            let at = f64::from(at);
            let expected = json!([0.0, at / 8.0, at / 4.0]);
            assert_eq!(response.json()["outputs"][0]["data"], expected, "{}", response.text());
        }
    });
    let statistics = server.get_json("/v2/models/one_row/stats").json();
    let model = &statistics["model_stats"][0];
    assert_eq!((&model["execution_count"], &model["inference_count"]), (&json!(1), &json!(8)));
    assert!(server.stop().success());
}

/// A configuration with the parameters that Triton's backend documents.
fn triton(parameters: &str) -> String {
    format!(
        "backend: \"openvino\"
         max_batch_size: 4
         input [ {{ name: \"x\" data_type: TYPE_FP32 dims: [ 4 ] }} ]
         output [ {{ name: \"y\" data_type: TYPE_FP32 dims: [ 3 ] }} ]
         instance_group [ {{ count: 2 kind: KIND_CPU }} ]
         parameters [ {parameters} ]\n"
    )
}

fn parameter(key: &str, value: &str) -> String {
    format!("{{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}")
}

/// Parameters of Triton's backend; and what cannot be loaded, while the others are served.
#[test]
fn parameters_and_errors() {
    let xml = read("openvino/one_row/1/model.xml");
    let bin = read("openvino/one_row/1/model.bin");
    let both = [parameter("NUM_STREAMS", "1"), parameter("PERFORMANCE_HINT", "LATENCY")].join(", ");
    let reshape = [parameter("RESHAPE_IO_LAYERS", "yes"), parameter("ENABLE_BATCH_PADDING", "YES")];
    let mut server =
        Server::new().flag("--strict-model-config=false").flag("--exit-on-error=false");
    for (name, parameters) in [
        ("latency", both),
        ("reshaped", reshape.join(", ")),
        ("graphics", parameter("TARGET_DEVICE", "GPU")),
        ("streams", parameter("NUM_STREAMS", "several")),
    ] {
        server = server
            .model(name, triton(&parameters))
            .file(&format!("{name}/1/model.xml"), &xml)
            .file(&format!("{name}/1/model.bin"), &bin);
    }
    let server = server
        .model("kind", triton("").replace("KIND_CPU", "KIND_GPU"))
        .file("kind/1/model.xml", &xml)
        .file("kind/1/model.bin", &bin)
        .model("weightless", "")
        .file("weightless/1/model.xml", &xml)
        .model("cut", "")
        .file("cut/1/model.tflite", &read("openvino/lite/1/model.tflite")[..100])
        .model("pointer", "platform: \"openvino\"")
        .file("pointer/1/model.onnx", "version https://git-lfs.github.com/spec/v1\n")
        .model("strings", "backend: \"openvino\"")
        .file("strings/1/model.onnx", read("identity_string/1/model.onnx"))
        .start();
    let numbers = [0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 8.0, 0.0];
    for model in ["latency", "reshaped"] {
        let found = ask(&server, model, "x", 4, &numbers);
        assert_eq!(found, json!([9.0, 10.0, 11.0, 6.0, 7.0, 8.0]), "{model}");
    }
    let index = server.post("/v2/repository/index", &[], "").json();
    let reason = |model: &str| {
        let entries = index.as_array().expect("a list");
        let found = entries.iter().find(|entry| entry["name"] == model).expect("the model");
        found["reason"].as_str().unwrap_or_default().to_owned()
    };
    for (model, expected) in [
        (
            "graphics",
            "graphics/1/model.xml: device 'GPU' is not present; the devices that OpenVINO finds here are: CPU",
        ),
        ("streams", "parameter 'NUM_STREAMS' is 'several', expected a number, AUTO or NUMA"),
        ("kind", "KIND_GPU"),
        ("weightless", "weightless/1/model.xml: the weights are missing: there is no file"),
        ("cut", "cut/1/model.tflite: OpenVINO: "),
        ("pointer", "pointer/1/model.onnx: the file is a Git LFS pointer and not the model"),
        ("strings", "strings, which OpenVINO's C interface cannot return"),
    ] {
        assert!(reason(model).contains(expected), "{model}: {}", reason(model));
    }
    assert!(server.stop().success());
}

/// A server without the library says how to get it, and serves other models.
#[test]
fn missing_library() {
    let dir = folder();
    for plugin in ["openvino/libtrtserver_openvino.so", "onnxruntime/libtrtserver_onnxruntime.so"] {
        let to = dir.path().join("backends").join(plugin);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(backends().join(plugin), to).expect("the plugin");
    }
    let server = Server::new()
        .backend_dir(dir.path().join("backends"))
        .env("LD_LIBRARY_PATH", "")
        .env("TRTSERVER_OPENVINO_LIBRARY", "")
        .env(
            "TRTSERVER_ONNXRUNTIME_LIBRARY",
            trtserver_tests::dist().join("lib/libonnxruntime.so.1"),
        )
        .flag("--exit-on-error=false")
        .flag("--strict-model-config=false")
        .copy_model("tests/models/openvino/lite")
        .copy_model("examples/models/digits")
        .start();
    digits_agree(&server, &[]);
    let index = server.post("/v2/repository/index", &[], "").text();
    for part in [
        "OpenVINO library not found; looked for libopenvino_c.so*",
        &dir.path().join("lib").display().to_string(),
        "cargo xtask runtimes --openvino",
        "pip install openvino",
        "--backend-config=openvino,library=PATH",
        "TRTSERVER_OPENVINO_LIBRARY=PATH",
    ] {
        assert!(index.contains(part), "no {part:?} in {index}");
    }
    assert!(server.stop().success());
}
