//! TensorRT plans over the wire, on a fake TensorRT and a fake CUDA driver: what passes here is
//! unproven on the real library.

mod batching;
mod graphs;
mod loading;
mod memory;
mod one_by_one;
mod refused;
mod refused_requests;
mod shapes;
mod with_tensorrt_lean;

use serde_json::{Value, json};
use trtserver_tests::fakes::Fakes;
use trtserver_tests::plans::{Plan, scale_config};
use trtserver_tests::{Response, Running, Server};

const MAJORS: [u32; 3] = [8, 10, 11];

/// A model with this plan.
fn model(server: Server, name: &str, config: impl AsRef<str>, plan: &Plan) -> Server {
    server.model(name, config).file(&format!("{name}/1/model.plan"), plan.bytes())
}

/// A server with the model `m`, which is `Plan::scale`.
fn scaling(fakes: &Fakes, major: u32, more: &str) -> Server {
    model(fakes.server(), "m", scale_config("m", more), &Plan::scale(major))
}

fn tensor(name: &str, datatype: &str, shape: &[usize], data: Value) -> Value {
    json!({ "name": name, "datatype": datatype, "shape": shape, "data": data })
}

fn infer(server: &Running, model: &str, inputs: &[Value]) -> Response {
    let body = json!({ "inputs": inputs }).to_string();
    server.post(&format!("/v2/models/{model}/infer"), &[], body)
}

/// The outputs of a request that succeeds, by name.
#[track_caller]
fn outputs(response: &Response) -> serde_json::Map<String, Value> {
    assert_eq!(response.status, 200, "{}", response.text());
    let all = response.json()["outputs"].as_array().cloned().unwrap_or_default();
    all.into_iter().map(|o| (o["name"].as_str().unwrap_or_default().to_owned(), o)).collect()
}

/// `rows` rows of `Plan::scale`.
fn send_rows(server: &Running, model: &str, rows: usize) -> Response {
    let values: Vec<f64> = (0..rows * 4).map(|i| i as f64).collect();
    infer(server, model, &[tensor("X", "FP32", &[rows, 4], json!(values))])
}

/// A request for `rows` rows is scaled.
#[track_caller]
fn scales(server: &Running, model: &str, rows: usize) {
    let outputs = outputs(&send_rows(server, model, rows));
    let expected: Vec<f64> = (0..rows * 4).map(|i| i as f64 * 2.5).collect();
    assert_eq!(outputs["Y"]["shape"], json!([rows, 4]));
    assert_eq!(outputs["Y"]["data"], json!(expected));
}

/// After the end of all processes.
#[track_caller]
fn leaks_nothing(fakes: &Fakes) {
    for leak in [
        "device_blocks",
        "device_bytes",
        "streams",
        "graphs",
        "double_frees",
        "bad_handles",
        "nvinfer_runtimes",
        "nvinfer_engines",
        "nvinfer_contexts",
        "nvinfer_refitters",
        "nvinfer_allocations",
    ] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

#[track_caller]
fn stops(server: Running, fakes: &Fakes) {
    assert!(server.stop().success());
    leaks_nothing(fakes);
}
