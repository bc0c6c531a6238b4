//! trtserver-perf, our load tool, on v2 servers.

use super::{Outcome, Workload, output};
use crate::Result;
use crate::load::Target;
use crate::requests::Frontend;
use crate::status;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Windows before it accepts a result; each takes a fifth longer than `-p`.
const WINDOWS: f64 = 3.0 * 1.2;

pub fn run(
    program: &Path,
    json: &Path,
    target: &Target,
    workload: Workload,
    [threads, calls_per_connection]: [usize; 2],
    length: Duration,
) -> Result<Outcome> {
    let (address, protocol) = match workload.frontend {
        Frontend::V2Http => (target.http()?, "http"),
        Frontend::V2Grpc | Frontend::V2Stream => (target.grpc()?, "grpc"),
        frontend => return Err(format!("trtserver-perf has no run over {}", frontend.name())),
    };
    let model = workload.work.model();
    let mut command = Command::new(program);
    command
        .args(["-m", model, "-i", protocol, "-u"])
        .arg(address.to_string())
        .arg(format!("--concurrency-range={}", workload.concurrency))
        .arg(format!("--shape=INPUT0:{}", workload.work.bytes() / size_of::<f32>()))
        .arg(format!("--max-threads={threads}"))
        .arg(format!("--measurement-interval={}", length.div_f64(WINDOWS).as_millis().max(1)))
        // As for perf_analyzer, the spread of several runs is shown instead.
        .arg("--stability-percentage=100000")
        .arg(format!("--calls-per-connection={calls_per_connection}"))
        .args(["--no-progress", "--json"])
        .arg(json);
    if workload.frontend == Frontend::V2Stream {
        command.arg("--streaming");
    }
    // Its own count covers its windows only.
    let http = target.http()?;
    let before = status::successful_requests(http, model)?;
    output(&mut command)?;
    let requests = status::successful_requests(http, model)?.saturating_sub(before);
    let text = std::fs::read_to_string(json).map_err(|e| format!("{}: {e}", json.display()))?;
    let report: Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", json.display()))?;
    let figure = |path: &str| {
        let value = report.pointer(&format!("/results/0/points/0/{path}"));
        let value = value.and_then(Value::as_f64);
        value.ok_or_else(|| format!("trtserver-perf's report has no '{path}': {text}"))
    };
    Ok(Outcome {
        requests: requests.max(1),
        per_second: figure("throughput")?,
        p50_us: figure("latency_us/p50")?,
        p99_us: figure("latency_us/p99")?,
    })
}
