//! TensorRT with its real library: plans that `trtexec` has built (docs/tensorrt.md), and a damaged
//! one.
//!
//! TRTSERVER_TENSORRT_MODELS is a model repository without configurations: `addsub`, from
//! tests/models/addsub_fp32, and `nonzero`, from tests/models/nonzero. TRTSERVER_TENSORRT_DIRECTORY
//! is the folder of the library, if the dynamic loader does not find it.

use crate::Options;
use crate::cuda::Driver;
use crate::install;
use crate::report::{CheckResult, Outcome};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trtserver_tests::{Running, Server};

/// Rows of a request, up to the largest batch of the plan.
const ROWS: [usize; 4] = [1, 3, 8, 5];
const COLUMNS: usize = 16;

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub fn run(_: &Driver, _: &Options) -> CheckResult {
    let folder = variable("TRTSERVER_TENSORRT_DIRECTORY");
    let damaged = refuses_a_damaged_plan(folder.as_deref())?;
    let Some(models) = variable("TRTSERVER_TENSORRT_MODELS") else {
        return Ok(Outcome::Skip(format!(
            "{damaged}; no plans: TRTSERVER_TENSORRT_MODELS names no repository (docs/tensorrt.md)"
        )));
    };
    let figures = serves(&models, folder.as_deref())?;
    Ok(Outcome::Pass(format!("{figures}; {damaged}")))
}

fn server(folder: Option<&Path>) -> Server {
    let server = install::server()
        .backend_dir(install::dist().join("backends"))
        .flag("--strict-model-config=false")
        .flag("--exit-on-error=false");
    match folder {
        Some(folder) => {
            let folder = folder.display();
            server.flag(format!("--backend-config=tensorrt,library-directory={folder}"))
        }
        None => server,
    }
}

/// A plan whose header is right: the library itself has to refuse it. Tried with each major version
/// that is found.
fn refuses_a_damaged_plan(folder: Option<&Path>) -> Result<String, String> {
    let majors = [8_u8, 10, 11];
    let add = |server: Server, major: u8| {
        let mut plan = b"ftrt\0\0\0\0".to_vec();
        plan.extend([0; 16]);
        plan.extend([major, 0, 0, 0]);
        plan.extend([0xa5; 4096]);
        let tensor = |kind: &str, name: &str| {
            format!("{kind} {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ 1 ] }}\n")
        };
        let config = tensor("input", "X") + &tensor("output", "Y");
        let name = format!("damaged{major}");
        server
            .model(&name, format!("platform: \"tensorrt_plan\"\n{config}"))
            .file(&format!("{name}/1/model.plan"), plan)
    };
    let server = majors.into_iter().fold(server(folder), add).start();
    let index = server.post("/v2/repository/index", &[], "").json();
    let mut tried = Vec::new();
    for major in majors {
        let name = format!("damaged{major}");
        let all = index.as_array();
        let entry = all.and_then(|all| all.iter().find(|m| m["name"] == name.as_str()));
        let reason = entry.and_then(|m| m["reason"].as_str()).unwrap_or_default();
        if reason.contains("no usable TensorRT") {
            continue;
        }
        if !reason.contains("model.plan") || reason.contains("cannot start") {
            return Err(format!("the damaged plan of TensorRT {major}: {reason:?}"));
        }
        tried.push(major.to_string());
    }
    if !server.stop().success() {
        return Err("the server did not survive a damaged plan".to_owned());
    }
    match tried.is_empty() {
        true => Err("no TensorRT library was found; TRTSERVER_TENSORRT_DIRECTORY names its folder"
            .to_owned()),
        false => Ok(format!("a damaged plan is refused by TensorRT {}", tried.join(", "))),
    }
}

fn serves(models: &Path, folder: Option<&Path>) -> Result<String, String> {
    let mut server = server(folder);
    let mut served = Vec::new();
    for name in ["addsub", "nonzero"] {
        let file = models.join(name).join("1/model.plan");
        if let Ok(plan) = std::fs::read(&file) {
            server = server.file(&format!("{name}/1/model.plan"), plan);
            served.push(name);
        }
    }
    if !served.contains(&"addsub") {
        return Err(format!("there is no {}", models.join("addsub/1/model.plan").display()));
    }
    let server = server.start();
    let mean = adds(&server)?;
    if served.contains(&"nonzero") {
        finds_places(&server)?;
    }
    let report = server.get("/v2/trtserver/memory").json();
    let bytes: u64 = report["models"].as_array().map_or(0, |all| all.iter().map(on_gpu).sum());
    if !server.stop().success() {
        return Err("the server did not exit with 0".to_owned());
    }
    Ok(format!(
        "{} are right; {} us a request, {bytes} bytes of GPU memory",
        served.join(" and "),
        mean.as_micros()
    ))
}

/// Bytes on GPUs of a model of the memory report.
fn on_gpu(model: &Value) -> u64 {
    let entries = model["memory"].as_array().into_iter().flatten();
    entries
        .filter(|entry| entry["type"] == "GPU")
        .filter_map(|entry| entry["byte_size"].as_u64())
        .sum()
}

fn outputs(server: &Running, model: &str, inputs: &Value) -> Result<Value, String> {
    let body = json!({ "inputs": inputs }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    match response.status {
        200 => Ok(response.json()["outputs"].clone()),
        status => Err(format!("{model}: status {status}: {}", response.text())),
    }
}

/// Sums and differences from four clients at once. Returns the mean time of a request.
fn adds(server: &Running) -> Result<Duration, String> {
    let one = |rows: usize| {
        let n = rows * COLUMNS;
        let tensor = |name: &str, value: &dyn Fn(usize) -> f64| {
            json!({ "name": name, "datatype": "FP32", "shape": [rows, COLUMNS],
                    "data": (0..n).map(value).collect::<Vec<_>>() })
        };
        let inputs = json!([tensor("INPUT0", &|i| i as f64), tensor("INPUT1", &|_| 1.0)]);
        let outputs = outputs(server, "addsub", &inputs)?;
        let expected = |name: &str, change: f64| {
            let output = outputs.as_array().and_then(|all| all.iter().find(|o| o["name"] == name));
            let right: Vec<f64> = (0..n).map(|i| i as f64 + change).collect();
            match output.is_some_and(|output| output["data"] == json!(right)) {
                true => Ok(()),
                false => Err(format!("addsub: {rows} rows give the wrong {name}: {outputs}")),
            }
        };
        expected("OUTPUT0", 1.0)?;
        expected("OUTPUT1", -1.0)
    };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let client = || (0..50).flat_map(|_| ROWS).try_for_each(one);
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        clients.into_iter().try_for_each(|client| {
            client.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))
        })
    })?;
    Ok(begin.elapsed() / (50 * ROWS.len() as u32))
}

/// How many places there are is known only when the plan runs.
fn finds_places(server: &Running) -> Result<(), String> {
    for (data, count) in [([0.0, 1.0, 0.0, 2.0], 2), ([0.0; 4], 0), ([1.0; 4], 4)] {
        let input =
            json!([{ "name": "INPUT0", "datatype": "FP32", "shape": [2, 2], "data": data }]);
        let outputs = outputs(server, "nonzero", &input)?;
        if outputs[0]["shape"] != json!([2, count]) {
            return Err(format!("nonzero: {data:?} gives {outputs}"));
        }
    }
    Ok(())
}
