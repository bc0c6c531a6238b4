//! `eager_batching` of ONNX models: the inputs of the next batch are copied while one runs. The same
//! load to a model with it and to one without.

use super::onnx::{batch, images, ok, register, server, with_library};
use crate::Options;
use crate::cuda::Driver;
use crate::onnx_model::{CLASSES, IMAGE, SIDE, config, resnet};
use crate::onnx_steps::host_steps;
use crate::report::{CheckResult, Outcome};
use crate::tensors::mean_time_of;
use serde_json::json;
use trtserver_tests::Running;
use trtserver_tests::http1::{Connection, Response, request};

/// Of a request: a full batch.
const ROWS: usize = 8;
/// Requests wait whenever a batch begins.
const CLIENTS: usize = 4;
const REQUESTS_PER_CLIENT: usize = 100;
/// What a request to the model that copies ahead may take at most, in those to the other one.
const PART: f64 = 1.02;

pub fn run(driver: &Driver, _: &Options) -> CheckResult {
    with_library(driver, |library| {
        let file = resnet(64);
        let group = "instance_group { kind: KIND_GPU gpus: 0 }";
        let eager = format!("{group}\noptimization {{ eager_batching: true }}");
        let server = server(&library)
            .model("plain", config("plain", group))
            .file("plain/1/model.onnx", &file)
            .model("eager", config("eager", &eager))
            .file("eager/1/model.onnx", &file)
            .start();
        let images = images(ROWS);
        let _region = register(&server, &images)?;
        let mut figures = Vec::new();
        let mut good = true;
        for (source, requests) in [
            ("region", ["plain", "eager"].map(|model| batch(model, ROWS))),
            ("body", ["plain", "eager"].map(|model| by_body(model, &images))),
        ] {
            equal_scores(&server, &requests)?;
            let [plain, eager] = ["plain", "eager"];
            let (without, without_steps) = load(&server, plain, &requests[0])?;
            let (with, with_steps) = load(&server, eager, &requests[1])?;
            let part = with / without;
            good &= part <= PART;
            figures.push(format!(
                "by {source}: {:.0} images/s without ({without_steps}), {:.0} with ({with_steps}), {part:.3} of the time \
                 (at most {PART})",
                ROWS as f64 / without,
                ROWS as f64 / with,
            ));
        }
        let figures = figures.join("; ");
        if good { Ok(Outcome::Pass(figures)) } else { Err(figures) }
    })
}

/// Seconds for each request under load, and the means of the steps.
fn load(server: &Running, model: &str, bytes: &[u8]) -> Result<(f64, String), String> {
    mean_time_of(server.http(), bytes, ok, CLIENTS, 20)?;
    let statistics = || server.get(&format!("/v2/models/{model}/stats")).json();
    let before = statistics();
    let time = mean_time_of(server.http(), bytes, ok, CLIENTS, REQUESTS_PER_CLIENT)?;
    Ok((time.as_secs_f64(), host_steps(&before, &statistics()).unwrap_or_default()))
}

/// The images as binary data.
fn by_body(model: &str, images: &[f32]) -> Vec<u8> {
    let head = json!({
        "inputs": [{ "name": "X", "datatype": "FP32", "shape": [ROWS, 3, SIDE, SIDE],
                     "parameters": { "binary_data_size": 4 * ROWS * IMAGE } }],
        "outputs": [{ "name": "Y", "parameters": { "binary_data": true } }],
    });
    let head = head.to_string();
    let length = head.len().to_string();
    let values = images.iter().flat_map(|value| value.to_le_bytes());
    let body: Vec<u8> = head.into_bytes().into_iter().chain(values).collect();
    let headers = [("Inference-Header-Content-Length", &*length)];
    request("POST", &format!("/v2/models/{model}/infer"), &headers, &body)
}

fn equal_scores(server: &Running, requests: &[Vec<u8>; 2]) -> Result<(), String> {
    let scores = |bytes: &[u8]| {
        let response: Response = Connection::open(server.http()).send(bytes).response();
        ok(&response)?;
        let scores = &response.body[response.body.len().saturating_sub(4 * ROWS * CLASSES)..];
        let float = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok::<Vec<f32>, String>(scores.chunks_exact(4).map(float).collect())
    };
    let (plain, eager) = (scores(&requests[0])?, scores(&requests[1])?);
    let largest = plain.iter().fold(0.0, |all: f32, score| all.max(score.abs()));
    let apart = plain.iter().zip(&eager).fold(0.0, |all: f32, (a, b)| all.max((a - b).abs()));
    match plain.len() == eager.len() && apart <= 0.01 * largest {
        true => Ok(()),
        false => {
            Err(format!("the scores of both models differ by {apart}, the largest is {largest}"))
        }
    }
}
