//! Attackers that may load models: requests that name files of the server's user, undo the
//! operator's isolation, or bring code. Each must be refused, and change nothing.

use super::attackers::{Attack, WAIT};
use crate::grpc::field;
use crate::http2::{Client, call_headers, message};
use crate::server::Running;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::thread;

const LOAD: &str = "/inference.GRPCInferenceService/RepositoryModelLoad";
/// A model of the repository, whose configuration the attackers replace.
pub const VICTIM: &str = "victim";

/// The requests, encoded once, and a path that none may write.
pub struct HostileLoads {
    folder: tempfile::TempDir,
    requests: Vec<(String, Vec<u8>)>,
}

impl HostileLoads {
    pub fn new() -> Self {
        let folder = crate::folder();
        let written = folder.path().join("written").display().to_string();
        let model = crate::root().join("tests/models/addsub_fp32/1/model.onnx");
        let onnx = fs::read(&model).unwrap_or_else(|e| panic!("{}: {e}", model.display()));
        let mut requests = Vec::new();
        let outside = ["/etc/passwd", "../../../../../../../../etc/passwd", "/etc", "../.."];
        let session = |key: &str| format!("session.{key}");
        for (key, value) in [
            (session("optimized_model_filepath"), &*written),
            (session("optimized_model_filepath"), "a\0b"),
            (session("enable_profiling"), &written),
            (session("collect_node_memory_stats_to_file"), &written),
            (session("node_partition_config_file"), outside[0]),
            (session("model_external_initializers_file_folder_path"), outside[1]),
            (session("model_external_initializers_file_folder_path"), outside[2]),
            (session("model_external_initializers_file_folder_path"), outside[3]),
            (session("unknown"), "1"),
            ("isolation".to_owned(), "none"),
        ] {
            let config = onnx_config(&json!({&key: {"string_value": value}}));
            requests.push((format!("{key}={value}"), load("hostile", &config, Some(&onnx))));
        }
        for place in outside {
            let file = [&onnx[..], &external_weights(place)].concat();
            let request = load("hostile", &onnx_config(&json!({})), Some(&file));
            requests.push((format!("weights in {place}"), request));
            for kind in ["label_filename", "input_data_file", "default_model_filename"] {
                let request = load(VICTIM, &naming_file(kind, place), None);
                requests.push((format!("{kind} {place}"), request));
            }
        }
        let uploaded = naming_file("default_model_filename", "model.onnx");
        requests.push(("code".to_owned(), load("hostile", &uploaded, Some(b"x"))));
        Self { folder, requests }
    }
}

pub fn attacks<'a>(server: &'a Running, loads: &'a HostileLoads) -> Vec<Attack<'a>> {
    vec![Attack::new("hostile-loads", 1, || hostile_loads(server, loads))]
}

/// Sends all of the requests; a load that succeeds is a violation.
fn hostile_loads(server: &Running, loads: &HostileLoads) -> Result<(), String> {
    for (what, request) in &loads.requests {
        let Ok(mut client) = Client::try_open(server.grpc(), WAIT, &[]) else { continue };
        let call = client.call(&call_headers(LOAD));
        client.send(call, request, true);
        if let Ok(ended) = client.try_end(call)
            && ended.status == Some(0)
        {
            return Err(format!("a load request was granted: {what}"));
        }
    }
    if fs::read_dir(loads.folder.path()).is_ok_and(|files| files.count() > 0) {
        return Err("a load request has written a file of the server".to_owned());
    }
    let maps = format!("/proc/{}/maps", server.process().pid().as_raw_nonzero());
    let maps = fs::read_to_string(Path::new(&maps)).unwrap_or_default();
    if maps.contains("libonnxruntime") {
        return Err("the library of an isolated backend is in the server".to_owned());
    }
    thread::sleep(WAIT / 4);
    Ok(())
}

/// A message `RepositoryModelLoadRequest`, with its length before it.
fn load(model: &str, config: &Value, file: Option<&[u8]>) -> Vec<u8> {
    let parameter = |key: &str, value: Vec<u8>| {
        field(3, &[field(1, key.as_bytes()), field(2, &value)].concat())
    };
    let config = parameter("config", field(3, config.to_string().as_bytes()));
    let file = file.map(|bytes| parameter("file:1/model.onnx", field(4, bytes)));
    message(&[field(2, model.as_bytes()), config, file.unwrap_or_default()].concat())
}

fn onnx_config(parameters: &Value) -> Value {
    let tensor = |name: &str| json!({"name": name, "data_type": "TYPE_FP32", "dims": [16]});
    json!({
        "name": "hostile", "platform": "onnxruntime_onnx", "max_batch_size": 8,
        "input": [tensor("INPUT0"), tensor("INPUT1")],
        "output": [tensor("OUTPUT0"), tensor("OUTPUT1")],
        "parameters": parameters,
    })
}

/// An initialiser of an ONNX model whose bytes are in another file.
fn external_weights(place: &str) -> Vec<u8> {
    let entry = [field(1, b"location"), field(2, place.as_bytes())].concat();
    // dims: 16, FLOAT; the bytes are external.
    let tensor = [&[0x08, 16, 0x10, 1][..], &field(8, b"W"), &field(13, &entry), &[0x70, 1]];
    // Messages of a field that is there twice are merged.
    field(7, &field(5, &tensor.concat()))
}

/// A configuration of the test plugin that names a file.
fn naming_file(kind: &str, place: &str) -> Value {
    let tensor = |name: &str| json!({"name": name, "data_type": "TYPE_FP32", "dims": [1]});
    let mut config = json!({
        "backend": "probe", "max_batch_size": 8,
        "input": [tensor("INPUT0")], "output": [tensor("OUTPUT0")],
    });
    match kind {
        "label_filename" => config["output"][0][kind] = json!(place),
        "input_data_file" => {
            let input = json!({"data_type": "TYPE_FP32", "dims": [1], kind: place});
            let warmup = json!({"name": "w", "batch_size": 1, "inputs": {"INPUT0": input}});
            config["model_warmup"] = json!([warmup]);
        }
        _ => config[kind] = json!(place),
    }
    config
}
