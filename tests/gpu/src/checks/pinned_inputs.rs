//! Large inputs are copied from pinned memory: bodies, and system shared memory where it is. Beside
//! a server that pins nothing.

use crate::Options;
use crate::cuda::Driver;
use crate::onnx_steps::host_steps;
use crate::region::Region;
use crate::report::{CheckResult, Outcome};
use crate::tensors::{binary, check, floats, median};
use crate::{install, models};
use serde_json::json;
use std::time::Duration;
use trtserver_tests::Running;
use trtserver_tests::http1::{Connection, request};

/// Floats of a tensor of 4 MiB.
const FLOATS: usize = 1 << 20;
/// Both inputs.
const BYTES: usize = 2 * 4 * FLOATS;
const REQUESTS: usize = 100;
/// What requests from pinned memory may take at most, in those from pageable memory.
const PART: f64 = 1.1;
const PINNED_BYTES: &str = "nv_pinned_memory_pool_used_bytes";

pub fn run(driver: &Driver, options: &Options) -> CheckResult {
    let requests = options.requests.min(REQUESTS);
    let (pinned, figures) = measure(requests, true)?;
    let (pageable, more) = measure(requests, false)?;
    let parts: Vec<f64> =
        pinned.iter().zip(&pageable).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect();
    let figures = format!(
        "two inputs of 4 MiB, pinned: {figures}; pageable: {more}; parts {parts:.2?} (at most {PART})"
    );
    match parts.iter().all(|part| *part <= PART) {
        _ if driver.is_test_double() => Ok(Outcome::Skip(format!("of a test double: {figures}"))),
        true => Ok(Outcome::Pass(figures)),
        false => Err(figures),
    }
}

/// Medians of requests by body and by region, and the figures.
fn measure(requests: usize, pins: bool) -> Result<([Duration; 2], String), String> {
    let group = "kind: KIND_GPU gpus: 0";
    let mut server = install::server().model("add", models::add("add", group, &[]));
    if !pins {
        server = server.flag("--pinned-memory-pool-byte-size=0");
    }
    let server = server.flag("--allow-client-shm=true").start();
    let (body, by_body) = steps(&server, requests, &binary("add", FLOATS))?;
    let inputs = [floats(0.0, FLOATS), floats(1.0, FLOATS)].concat();
    let before = pinned_bytes(&server);
    let _region = Region::register(&server, "r", &inputs)?;
    let (region, by_region) = steps(&server, requests, &in_region())?;
    let during = pinned_bytes(&server);
    let taken = during - before >= BYTES as f64;
    if taken != pins {
        let expected = if pins { BYTES } else { 0 };
        return Err(format!(
            "expected {expected} bytes of the region to be pinned, found {before} bytes before and {during} after"
        ));
    }
    let response = server.post("/v2/systemsharedmemory/region/r/unregister", &[], "");
    if response.status != 200 {
        return Err(format!("unregister: status {}: {}", response.status, response.text()));
    }
    server.poll_until("the region is not pinned any more", |server| pinned_bytes(server) <= before);
    let figures = format!("body {body:.1?} ({by_body}), region {region:.1?} ({by_region})");
    Ok(([body, region], figures))
}

fn pinned_bytes(server: &Running) -> f64 {
    server.metrics(PINNED_BYTES).unwrap_or(0.0)
}

/// The median of requests, one after another, and the means of their steps.
fn steps(server: &Running, requests: usize, bytes: &[u8]) -> Result<(Duration, String), String> {
    let mut connection = Connection::open(server.http());
    let mut infer = || check(&connection.send(bytes).response(), FLOATS);
    // Blocks are pinned for the first ones.
    (0..3).try_for_each(|_| infer())?;
    let statistics = || server.get("/v2/models/add/stats").json();
    let before = statistics();
    let time = median(requests, infer)?;
    Ok((time, host_steps(&before, &statistics()).unwrap_or_default()))
}

/// The request of [`binary`] with both inputs in the region.
fn in_region() -> Vec<u8> {
    let input = |(number, name): (usize, &str)| {
        let at = json!({ "shared_memory_region": "r", "shared_memory_offset": 4 * FLOATS * number,
                         "shared_memory_byte_size": 4 * FLOATS });
        json!({ "name": name, "datatype": "FP32", "shape": [1, FLOATS], "parameters": at })
    };
    let inputs: Vec<_> = ["INPUT0", "INPUT1"].into_iter().enumerate().map(input).collect();
    let output = json!({ "name": "OUTPUT0", "parameters": { "binary_data": true } });
    let body = json!({ "inputs": inputs, "outputs": [output] });
    request("POST", "/v2/models/add/infer", &[], body.to_string().as_bytes())
}
