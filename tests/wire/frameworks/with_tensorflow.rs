//! TensorFlow models; need its library.

use super::{digits_agree, serves_the_family};
use serde_json::{Value, json};
use std::fs;
use trtserver_tests::{Running, Server, http1, isolated, parameters, tensorflow};

const RELEASES: [&str; 2] = ["2.21.0", "2.12.0"];

/// With each of the two releases.
fn every_release_serves(folder: &str) {
    for release in RELEASES {
        let library = tensorflow(release);
        let flag = format!("--backend-config=tensorflow,library={}", library.display());
        serves_the_family(folder, &[], &[&flag]);
    }
}

#[test]
fn graphdef() {
    every_release_serves("graphdef");
}

#[test]
fn savedmodel() {
    every_release_serves("savedmodel");
}

/// One picture, four formats, the same scores.
#[test]
fn digits_of_every_framework() {
    let server = Server::new()
        .copy_model("examples/models/digits")
        .copy_models("examples/models-caffe2")
        .copy_models("examples/models-tensorflow")
        .start();
    let others = ["digits_netdef", "digits_graphdef", "digits_savedmodel"];
    digits_agree(&server, &others);
    assert!(server.stop().success());
}

/// OUTPUT0 for one row of these values.
#[track_caller]
fn output(server: &Running, model: &str, datatype: &str, values: Value) -> Value {
    let length = values.as_array().map_or(0, Vec::len);
    let input =
        json!({ "name": "INPUT0", "datatype": datatype, "shape": [1, length], "data": values });
    let body = json!({ "inputs": [input] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    response.json()["outputs"][0]["data"].clone()
}

/// As TensorFlow 2 saves them: functions, a variable to restore, a table to fill from an asset.
#[test]
fn variables_tables_and_assets_are_restored() {
    let server = Server::new()
        .copy_model("tests/models/tensorflow/scale")
        .copy_model("tests/models/tensorflow/table")
        .start();
    assert_eq!(output(&server, "scale", "FP32", json!([1, -2.5])), json!([3.0, -7.5]));
    assert_eq!(output(&server, "table", "BYTES", json!(["two", "six", "zero"])), json!([2, -1, 0]));
    assert!(server.stop().success());
}

/// Adds a model of `tests/models` whose configuration has this parameter, too.
fn with_parameter(server: Server, model: &str, parameter: (&str, &str)) -> Server {
    let server = server.copy_model(format!("tests/models/{model}"));
    let name = model.rsplit('/').next().unwrap_or(model);
    let config = server.models().join(name).join("config.pbtxt");
    let text = fs::read_to_string(&config).unwrap_or_default() + &parameters(&[parameter]);
    server.file(&format!("{name}/config.pbtxt"), text)
}

/// The parameters choose the signature and the tag.
#[test]
fn signature_and_tag_are_chosen() {
    let server =
        with_parameter(Server::new(), "tensorflow/two_signatures", ("TF_SIGNATURE_DEF", "minus"));
    let server = with_parameter(server, "tensorflow/no_serve_tag", ("TF_GRAPH_TAG", "train"));
    let server = server.start();
    assert_eq!(output(&server, "two_signatures", "FP32", json!([1, 2])), json!([0.0, 1.0]));
    assert_eq!(output(&server, "no_serve_tag", "FP32", json!([1, 2])), json!([2.0, 3.0]));
    assert!(server.stop().success());
}

/// In a process of its own, beside a model in the server.
#[test]
fn isolated_model_is_served() {
    let server = Server::new().copy_model("tests/models/graphdef/identity_fp32");
    let server =
        with_parameter(server, "savedmodel/identity_string", ("isolation", "process")).start();
    assert_eq!(output(&server, "identity_string", "BYTES", json!(["a", ""])), json!(["a", ""]));
    assert_eq!(output(&server, "identity_fp32", "FP32", json!([1, 2])), json!([1.0, 2.0]));
    assert_eq!(isolated::processes(&server, "identity_string").len(), 1);
    assert!(server.stop().success());
}

/// Unloading ends the process that has loaded TensorFlow, so that all its memory is returned.
#[test]
fn unloaded_isolated_model_leaves_no_process() {
    let server = Server::new().flag("--model-control-mode=explicit");
    let server = with_parameter(server, "savedmodel/identity_fp32", ("isolation", "process"));
    let server = server.flag("--load-model=identity_fp32").start();
    assert_eq!(output(&server, "identity_fp32", "FP32", json!([1, 2])), json!([1.0, 2.0]));
    let process = isolated::process(&server, "identity_fp32");
    let unload = server.post("/v2/repository/models/identity_fp32/unload", &[], "");
    assert_eq!(unload.status, 200, "{}", unload.text());
    server.poll_until("the process to end", |_| !isolated::is_alive(process));
    assert!(server.stop().success());
}

#[test]
fn warmup_runs_before_the_model_is_ready() {
    let server = Server::new().copy_model("tests/models/graphdef/addsub_fp32");
    let config = server.models().join("addsub_fp32/config.pbtxt");
    let input = |name: &str| {
        format!(
            "inputs {{ key: \"{name}\" value {{ data_type: TYPE_FP32 dims: [ 16 ] zero_data: true }} }}"
        )
    };
    let warmup = format!(
        "model_warmup {{ name: \"zeros\" batch_size: 2 {} {} }}\n",
        input("INPUT0"),
        input("INPUT1")
    );
    let text = fs::read_to_string(&config).unwrap_or_default() + &warmup;
    let server = server.file("addsub_fp32/config.pbtxt", text).start();
    let stats = server.get("/v2/models/addsub_fp32/stats").json();
    let stats = &stats["model_stats"][0];
    assert_eq!(stats["warmup_stats"]["zeros"]["count"], 1, "{stats}");
    assert_eq!(stats["inference_count"], 0, "{stats}");
    assert!(server.stop().success());
}

/// Two requests of different shapes in one run, whose output is cut by the shapes of the input.
#[test]
fn ragged_input_is_served() {
    let config = "platform: \"tensorflow_savedmodel\" max_batch_size: 2 \
                  input { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } \
                  output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] } \
                  batch_output { target_name: \"OUTPUT0\" source_input: \"INPUT0\" } \
                  dynamic_batching { max_queue_delay_microseconds: 600000000 }";
    let server = Server::new().copy_model("tests/models/savedmodel/identity_fp32_nobatch");
    let server = server.triton_start_line();
    let server = server.file("identity_fp32_nobatch/config.pbtxt", config).start();
    let mut connections = [server.connect(), server.connect()];
    let rows = [json!([1.0, 2.0]), json!([3.0, 4.0, 5.0])];
    for (connection, row) in connections.iter_mut().zip(&rows) {
        let length = row.as_array().map_or(0, Vec::len);
        let input =
            json!({ "name": "INPUT0", "datatype": "FP32", "shape": [1, length], "data": row });
        let body = json!({ "inputs": [input] }).to_string();
        let path = "/v2/models/identity_fp32_nobatch/infer";
        connection.send(http1::request("POST", path, &[], body.as_bytes()));
    }
    for (connection, row) in connections.iter_mut().zip(&rows) {
        let response = connection.response();
        assert_eq!(response.json()["outputs"][0]["data"], *row, "{}", response.text());
    }
    let stats = server.get("/v2/models/identity_fp32_nobatch/stats").json();
    assert_eq!(stats["model_stats"][0]["execution_count"], 1, "{stats}");
    assert!(server.stop().success());
}

/// The file names a fraction of GPU memory that the backend refuses, so it has reached the backend;
/// the flag overrides it.
#[test]
fn platform_config_file_sets_the_session_of_tensorflow() {
    let server = || {
        let text = r#"platform_configs { key: "tensorflow_graphdef" value { source_adapter_config {
            [type.googleapis.com/nvidia.inferenceserver.GraphDefBundleSourceAdapterConfig] {
              session_config { gpu_options { per_process_gpu_memory_fraction: 7 } } } } } }"#;
        let server = Server::new().copy_model("tests/models/graphdef/addsub_fp32");
        let file = server.models().join("addsub_fp32/platforms");
        server
            .file("addsub_fp32/platforms", text)
            .flag(format!("--platform-config-file={}", file.display()))
    };
    let ended = server().refuses_to_start();
    let refusal = "setting 'gpu-memory-fraction' must be a number from 0 to 1, not '7'";
    assert!(ended.stderr.contains(refusal), "{}", ended.stderr);
    let server = server().flag("--tf-gpu-memory-fraction=0.5").start();
    let ones = json!(vec![1; 16]);
    let inputs = ["INPUT0", "INPUT1"].map(
        |name| json!({ "name": name, "datatype": "FP32", "shape": [1, 16], "data": ones.clone() }),
    );
    let body = json!({ "inputs": inputs }).to_string();
    let response = server.post("/v2/models/addsub_fp32/infer", &[], body);
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(server.stop().success());
}
