//! ONNX models by ONNX Runtime on CUDA: results, throughput and latency beside a bare loop over the
//! same library, priorities, and device memory over many requests.

use crate::cuda::Driver;
use crate::onnx_model::{CLASSES, IMAGE, SIDE, config, resnet};
use crate::onnx_runtime::{Bare, library};
use crate::onnx_steps::{host_steps, plugin_steps, prepared_runs};
use crate::region::Region;
use crate::report::{CheckResult, Outcome};
use crate::tensors::{mean_time_of, median, served};
use crate::{Options, install};
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trtserver_tests::http1::{Connection, Response, request};
use trtserver_tests::{Running, Server};

const ROWS: usize = 8;
const CLIENTS: usize = 4;
const REQUESTS: usize = 200;
/// Requests of one image: several lines of the plugin's log.
const ONE_IMAGE: usize = 600;
/// How long the requests of the memory check may take.
const MEMORY_TIME: Duration = Duration::from_secs(40);
/// Part of the bare loop's throughput that the server must reach.
const THROUGHPUT: f64 = 0.95;
/// What the server may add to a request of one image.
const LATENCY: Duration = Duration::from_micros(60);
/// How much longer requests to a model of PRIORITY_MAX may take beside one of PRIORITY_MIN.
const BESIDE: f64 = 1.3;
/// Bytes that other programs and the driver may take meanwhile.
const MARGIN: u64 = 4 << 20;

const ON_GPU: &str = "instance_group { kind: KIND_GPU gpus: 0 }";

/// Runs `check` with the library, unless it is missing or the driver is a test double.
pub fn with_library(driver: &Driver, check: impl FnOnce(PathBuf) -> CheckResult) -> CheckResult {
    if driver.is_test_double() {
        return Ok(Outcome::Skip("ONNX Runtime for GPUs does not run on a test double".to_owned()));
    }
    match library(&install::dist()) {
        Ok(library) => check(library),
        Err(reason) => Ok(Outcome::Skip(reason)),
    }
}

pub fn server(library: &std::path::Path) -> Server {
    install::server()
        .backend_dir(install::dist().join("backends"))
        .flag(format!("--backend-config=onnxruntime,library={}", library.display()))
        .flag("--allow-client-shm=true")
}

pub fn images(rows: usize) -> Vec<f32> {
    (0..rows * IMAGE).map(|i| (i % 251) as f32 / 251.0).collect()
}

pub fn speed(driver: &Driver, _: &Options) -> CheckResult {
    with_library(driver, |library| {
        let model = resnet(64);
        let server = server(&library)
            .flag("--log-verbose=1")
            .model("resnet", config("resnet", ON_GPU))
            .file("resnet/1/model.onnx", &model)
            .start();
        let images = images(ROWS);
        let _region = register(&server, &images)?;
        let mut bare = Bare::open(&library, &model, Some(0), ROWS)?;
        let expected = bare.run(&images)?.to_vec();
        compare(&server, &expected)?;
        // All algorithms are chosen, and the arenas have grown.
        (0..20).try_for_each(|_| bare.run(&images).map(drop))?;
        mean_time_of(server.http(), &batch("resnet", ROWS), ok, CLIENTS, 20)?;
        let begin = Instant::now();
        (0..REQUESTS).try_for_each(|_| bare.run(&images).map(drop))?;
        let alone = begin.elapsed() / REQUESTS as u32;
        let served_in =
            mean_time_of(server.http(), &batch("resnet", ROWS), ok, CLIENTS, REQUESTS / CLIENTS)?;
        let ratio = alone.as_secs_f64() / served_in.as_secs_f64();
        let (added, latency) = latency(&server, &library, &model, &images[..IMAGE])?;
        let figures = format!(
            "batches of {ROWS}: bare {alone:.1?}, server {served_in:.1?}, {ratio:.2} of the throughput (at least {THROUGHPUT}); \
             {latency} (added {added:.1?}, at most {LATENCY:?})"
        );
        if ratio >= THROUGHPUT && added <= LATENCY {
            Ok(Outcome::Pass(figures))
        } else {
            Err(figures)
        }
    })
}

/// What the server adds to a request of one image, and the figures.
fn latency(
    server: &Running,
    library: &std::path::Path,
    model: &[u8],
    image: &[f32],
) -> Result<(Duration, String), String> {
    let mut bare = Bare::open(library, model, Some(0), 1)?;
    (0..20).try_for_each(|_| bare.run(image).map(drop))?;
    let alone = median(REQUESTS, || bare.run(image).map(drop))?;
    let statistics = || server.get("/v2/models/resnet/stats").json();
    mean_time_of(server.http(), &batch("resnet", 1), ok, 1, 20)?;
    let before = statistics();
    mean_time_of(server.http(), &batch("resnet", 1), ok, 1, ONE_IMAGE)?;
    let after = statistics();
    let ((earlier, start), (count, time)) = (served(&before)?, served(&after)?);
    let inside = (time - start) / (count - earlier).max(1) as u32;
    let steps = host_steps(&before, &after).unwrap_or_default();
    let log = server.log();
    let plugin = plugin_steps(&log, "resnet").unwrap_or("nothing in the log");
    let runs = prepared_runs(&log, "resnet");
    Ok((
        inside.saturating_sub(alone),
        format!(
            "one image: bare {alone:.1?}, in the server {inside:.1?}; steps of the server: {steps}, of the plugin: \
             {plugin}; runs at load: {runs:?}"
        ),
    ))
}

pub fn priorities(driver: &Driver, _: &Options) -> CheckResult {
    with_library(driver, |library| {
        let model = resnet(64);
        let with = |priority: &str| format!("{ON_GPU}\noptimization {{ priority: {priority} }}");
        let server = server(&library)
            .model("max", config("max", &with("PRIORITY_MAX")))
            .file("max/1/model.onnx", &model)
            .model("min", config("min", &with("PRIORITY_MIN")))
            .file("min/1/model.onnx", &model)
            .start();
        let _region = register(&server, &images(ROWS))?;
        for name in ["max", "min"] {
            mean_time_of(server.http(), &batch(name, ROWS), ok, 1, 20)?;
            mean_time_of(server.http(), &batch(name, 1), ok, 1, 20)?;
        }
        let alone = p99(&server, "max")?;
        let done = AtomicBool::new(false);
        let beside = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let mut connection = Connection::open(server.http());
                while !done.load(Ordering::Relaxed) {
                    ok(&connection.send(batch("min", ROWS)).response())?;
                }
                Ok::<(), String>(())
            });
            let beside = p99(&server, "max");
            done.store(true, Ordering::Relaxed);
            load.join().unwrap_or_else(|_| Err("the load beside panicked".to_owned()))?;
            beside
        })?;
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        let figures = format!(
            "99th percentile of PRIORITY_MAX: {alone:.1?} alone, {beside:.1?} beside PRIORITY_MIN: {ratio:.2} (at most {BESIDE})"
        );
        if ratio <= BESIDE { Ok(Outcome::Pass(figures)) } else { Err(figures) }
    })
}

/// 99th percentile of the latency of requests of one image, one at a time.
fn p99(server: &Running, model: &str) -> Result<Duration, String> {
    let mut connection = Connection::open(server.http());
    let bytes = batch(model, 1);
    let mut times = Vec::with_capacity(REQUESTS * 5);
    for _ in 0..REQUESTS * 5 {
        let begin = Instant::now();
        ok(&connection.send(&bytes).response())?;
        times.push(begin.elapsed());
    }
    times.sort();
    Ok(times[times.len() * 99 / 100])
}

pub fn memory(driver: &Driver, options: &Options) -> CheckResult {
    with_library(driver, |library| {
        let context = driver.context(&driver.devices()[0])?;
        let group = "instance_group { kind: KIND_GPU gpus: 0 count: 2 }\ndynamic_batching { }";
        // Small, so that many requests fit into the time.
        let server = server(&library)
            .model("small", config("small", group))
            .file("small/1/model.onnx", resnet(4))
            .start();
        let _region = register(&server, &images(ROWS))?;
        let load = |requests: usize| {
            mean_time_of(server.http(), &batch("small", 1), ok, ROWS, requests.div_ceil(ROWS))
        };
        let begin = Instant::now();
        // The arenas grow in the first ones.
        load((options.requests / 20).clamp(ROWS, 800))?;
        let used = || context.memory().map(|(free, total)| total - free);
        let (before, start, mut done) = (used()?, Instant::now(), 0);
        while done < options.requests && begin.elapsed() < MEMORY_TIME {
            // Small pieces, so that a slow machine ends in time, too.
            let piece = (options.requests - done).min(ROWS * 100);
            load(piece)?;
            done += piece;
        }
        let (time, after) = (start.elapsed(), used()?);
        let figures = format!(
            "{done} of {} requests in at most {MEMORY_TIME:?}: {before} bytes of the GPU in use before, {after} after; \
             {:.0} requests/s",
            options.requests,
            done as f64 / time.as_secs_f64()
        );
        if after <= before + MARGIN { Ok(Outcome::Pass(figures)) } else { Err(figures) }
    })
}

/// Images in shared memory, registered as `images`.
pub fn register(server: &Running, images: &[f32]) -> Result<Region, String> {
    let bytes: Vec<u8> = images.iter().flat_map(|value| value.to_le_bytes()).collect();
    Region::register(server, "images", &bytes)
}

/// A request for the scores of the first images of the region, as binary data.
pub fn batch(model: &str, rows: usize) -> Vec<u8> {
    let body = json!({
        "inputs": [{ "name": "X", "datatype": "FP32", "shape": [rows, 3, SIDE, SIDE],
                     "parameters": { "shared_memory_region": "images", "shared_memory_byte_size": 4 * rows * IMAGE } }],
        "outputs": [{ "name": "Y", "parameters": { "binary_data": true } }],
    });
    request("POST", &format!("/v2/models/{model}/infer"), &[], body.to_string().as_bytes())
}

pub fn ok(response: &Response) -> Result<(), String> {
    match response.status {
        200 => Ok(()),
        status => Err(format!("status {status}: {}", response.text())),
    }
}

/// Compares the server's scores with those of the bare loop.
fn compare(server: &Running, expected: &[f32]) -> Result<(), String> {
    let response = Connection::open(server.http()).send(batch("resnet", ROWS)).response();
    ok(&response)?;
    let bytes = &response.body[response.body.len().saturating_sub(4 * ROWS * CLASSES)..];
    let scores: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let largest = expected.iter().fold(0.0, |all: f32, score| all.max(score.abs()));
    let apart = expected.iter().zip(&scores).fold(0.0, |all: f32, (a, b)| all.max((a - b).abs()));
    if scores.len() == expected.len() && apart <= 0.01 * largest {
        return Ok(());
    }
    Err(format!("scores differ from those of the bare loop by {apart}, the largest is {largest}"))
}
