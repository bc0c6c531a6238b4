//! Prepared batch sizes of ONNX models: one image beside a bare run, many clients with dynamic
//! batching, and latencies from the first request on.

use super::onnx::{batch, images, ok, register, server, with_library};
use crate::Options;
use crate::cuda::Driver;
use crate::onnx_model::{CLASSES, config, resnet};
use crate::onnx_steps::{host_steps, plugin_steps, prepared_runs};
use crate::report::{CheckResult, Outcome};
use std::time::{Duration, Instant};
use trtserver_tests::Running;
use trtserver_tests::http1::Connection;

const ROWS: usize = 8;
const REQUESTS: usize = 512;
const CLIENTS: usize = 16;
const REQUESTS_PER_CLIENT: usize = 200;
/// What the server may add to a bare run of one image.
const ADDED: Duration = Duration::from_micros(200);
/// Part of the images per second of bare runs of the largest size.
const THROUGHPUT: f64 = 0.9;
/// 99th percentile in medians, from the first request on.
const SPREAD: f64 = 1.5;

pub fn run(driver: &Driver, _: &Options) -> CheckResult {
    with_library(driver, |library| {
        let model = resnet(64);
        let group = "instance_group { kind: KIND_GPU gpus: 0 }\ndynamic_batching { }";
        let shared = format!(
            "{group}\nparameters {{ key: \"batch_buckets_share_weights\" value {{ string_value: \"1\" }} }}"
        );
        let server = server(&library)
            .flag("--log-verbose=1")
            .model("one", config("one", group))
            .file("one/1/model.onnx", &model)
            .model("many", config("many", group))
            .file("many/1/model.onnx", &model)
            .model("shared", config("shared", &shared))
            .file("shared/1/model.onnx", &model)
            .start();
        let _region = register(&server, &images(ROWS))?;
        let (one, one_is_good) = one_image(&server)?;
        let (many, many_is_good) = many_clients(&server)?;
        let of_shared = shared_session(&server)?;
        let growth = server.get("/v2/trtserver/memory").json();
        let growth = growth["models"].as_array().into_iter().flatten();
        let growth: Vec<_> = growth.map(|model| model["gpu_at_load"].to_string()).collect();
        let figures = format!("{one}; {many}; {of_shared}; memory at load {}", growth.join(" "));
        if one_is_good && many_is_good { Ok(Outcome::Pass(figures)) } else { Err(figures) }
    })
}

/// Compares a model whose sizes share a session with one whose sizes do not, in an order that changes
/// the size each time.
fn shared_session(server: &Running) -> Result<String, String> {
    for rows in [1, 8, 2, 3, 8, 4, 5, 1, 7, 8] {
        let scores = |model: &str| {
            let response = Connection::open(server.http()).send(batch(model, rows)).response();
            ok(&response)?;
            let bytes = &response.body[response.body.len().saturating_sub(4 * rows * CLASSES)..];
            let float = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            Ok::<Vec<f32>, String>(bytes.chunks_exact(4).map(float).collect())
        };
        let (own, shared) = (scores("one")?, scores("shared")?);
        let largest = own.iter().fold(0.0, |all: f32, score| all.max(score.abs()));
        let apart = own.iter().zip(&shared).fold(0.0, |all: f32, (a, b)| all.max((a - b).abs()));
        if own.len() != shared.len() || apart > 0.01 * largest {
            return Err(format!("{rows} rows of a shared session differ by {apart} of {largest}"));
        }
    }
    let runs = runs(server, "shared")?;
    Ok(format!("sizes that share a session give the same scores, runs at load {runs:?}"))
}

/// Size and time of bare runs, ascending.
fn runs(server: &Running, model: &str) -> Result<Vec<(usize, Duration)>, String> {
    let found = prepared_runs(&server.log(), model);
    found.ok_or_else(|| format!("the log does not say what '{model}' is prepared for"))
}

fn one_image(server: &Running) -> Result<(String, bool), String> {
    let bare = runs(server, "one")?.first().map_or(Duration::ZERO, |(_, time)| *time);
    let statistics = || server.get("/v2/models/one/stats").json();
    let before = statistics();
    let times = latencies(server, "one", REQUESTS)?;
    let steps = host_steps(&before, &statistics()).unwrap_or_default();
    let log = server.log();
    let inside = plugin_steps(&log, "one").unwrap_or("nothing in the log");
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let spread = p99.as_secs_f64() / median.as_secs_f64();
    let figures = format!(
        "one image: bare {bare:.1?}, median {median:.1?} (at most {ADDED:?} more), p99 {spread:.2} medians from the first \
         request on (at most {SPREAD}); server: {steps}; plugin: {inside}"
    );
    Ok((figures, median <= bare + ADDED && spread <= SPREAD))
}

fn many_clients(server: &Running) -> Result<(String, bool), String> {
    let (rows, bare) = runs(server, "many")?.last().copied().unwrap_or_default();
    let statistics = || server.get("/v2/models/many/stats").json();
    let (before, begin) = (statistics(), Instant::now());
    let mut times = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| latencies(server, "many", REQUESTS_PER_CLIENT)))
            .collect();
        let mut all = Vec::new();
        for client in clients {
            all.extend(client.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))?);
        }
        Ok::<_, String>(all)
    })?;
    let rate = times.len() as f64 / begin.elapsed().as_secs_f64();
    let steps = host_steps(&before, &statistics()).unwrap_or_default();
    times.sort();
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let (ideal, spread) =
        (rows as f64 / bare.as_secs_f64(), p99.as_secs_f64() / median.as_secs_f64());
    let part = rate / ideal;
    let log = server.log();
    let inside = plugin_steps(&log, "many").unwrap_or("nothing in the log");
    let count = |what: &str| {
        let sample = format!("onnxruntime_{what}_rows_total{{model=\"many\",version=\"1\"}}");
        server.metrics(&sample).unwrap_or(0.0)
    };
    let padding = count("padding") / (count("padding") + count("prepared")).max(1.0);
    let figures = format!(
        "{CLIENTS} clients: {rate:.0} images/s, {part:.2} of {ideal:.0} by bare runs of {rows} (at least {THROUGHPUT}), \
         median {median:.1?}, p99 {spread:.2} medians (at most {SPREAD}), {:.0} % padding; server: {steps}; plugin: {inside}",
        100.0 * padding
    );
    Ok((figures, part >= THROUGHPUT && spread <= SPREAD))
}

/// Latencies of requests of one image, one after another; ascending.
fn latencies(server: &Running, model: &str, requests: usize) -> Result<Vec<Duration>, String> {
    let mut connection = Connection::open(server.http());
    let bytes = batch(model, 1);
    let mut times = Vec::with_capacity(requests);
    for _ in 0..requests {
        let begin = Instant::now();
        ok(&connection.send(&bytes).response())?;
        times.push(begin.elapsed());
    }
    times.sort();
    Ok(times)
}
