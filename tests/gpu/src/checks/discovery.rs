//! The server uses the GPUs that the driver and nvidia-smi report.

use crate::Options;
use crate::cuda::{Device, Driver};
use crate::install;
use crate::models;
use crate::report::{CheckResult, Outcome};
use std::process::Command;

pub fn run(driver: &Driver, _: &Options) -> CheckResult {
    let server = install::server().model("auto", models::add("auto", "", &[])).start();
    let config = server.get("/v2/models/auto/config").json();
    let expected: Vec<i32> = driver.devices().iter().map(|device| device.ordinal).collect();
    let group = &config["instance_group"][0];
    let placed: Vec<i32> = group["gpus"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|id| id.as_i64())
        .map(|id| id as i32)
        .collect();
    if group["kind"] != "KIND_GPU" || placed != expected {
        return Err(format!(
            "a model without an instance group is placed as {group}, expected the GPUs {expected:?}"
        ));
    }
    let metrics = server.metrics_text();
    let mut compared = "the driver".to_owned();
    match nvidia_smi() {
        // Without NVML the server has no GPU metrics either.
        None => compared += "; nvidia-smi is missing, so the metrics were not compared",
        Some(rows) => {
            for device in driver.devices() {
                compare(device, &rows, &metrics)?;
            }
            compared += " and nvidia-smi";
        }
    }
    Ok(Outcome::Pass(format!("{} GPUs as reported by {compared}", expected.len())))
}

/// UUID, compute capability and MiB of memory by `nvidia-smi`; `None` where it is missing.
fn nvidia_smi() -> Option<Vec<[String; 3]>> {
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=uuid,compute_cap,memory.total", "--format=csv,noheader,nounits"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let row = |line: &str| {
        let mut fields = line.split(',').map(|field| field.trim().to_owned());
        Some([fields.next()?, fields.next()?, fields.next()?])
    };
    Some(String::from_utf8_lossy(&output.stdout).lines().filter_map(row).collect())
}

fn compare(device: &Device, rows: &[[String; 3]], metrics: &str) -> Result<(), String> {
    let [_, compute, mib] = rows
        .iter()
        .find(|row| row[0] == device.uuid)
        .ok_or_else(|| format!("nvidia-smi does not list {}: {rows:?}", device.uuid))?;
    let (major, minor) = device.compute;
    if *compute != format!("{major}.{minor}") {
        return Err(format!(
            "{}: {major}.{minor} by the driver, {compute} by nvidia-smi",
            device.uuid
        ));
    }
    let sample = format!("nv_gpu_memory_total_bytes{{gpu_uuid=\"{}\"}} ", device.uuid);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&sample));
    let bytes: f64 = value
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| format!("the metrics page has no {sample}"))?;
    let expected: f64 = mib.parse().map_err(|e| format!("nvidia-smi: {mib}: {e}"))?;
    if (bytes / 1_048_576.0 - expected).abs() > 1.0 {
        return Err(format!("{sample}{bytes}, but nvidia-smi reports {mib} MiB"));
    }
    Ok(())
}
