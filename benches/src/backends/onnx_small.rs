//! A small ONNX model with many requests in flight, the server on one core: what the server and its
//! batches make of ONNX Runtime's own speed. Beside it a loop of one thread that runs the same model
//! with one row at a time, without a server, and the same model without dynamic batching.

use crate::Result;
use crate::cores::Cores;
use crate::load;
use crate::onnx::BareModel;
use crate::options::Options;
use crate::pairs;
use crate::perceptron;
use crate::process::Process;
use crate::repository::{empty, has_onnxruntime};
use crate::requests::{Frontend, Work, exchanges};
use crate::schedulers::batches::Batches;
use crate::schedulers::cpu::thread_cpu;
use crate::table::{Table, median, verdict};
use std::fs;
use std::path::Path;
use std::time::Instant;

pub const COLUMNS: &[&str] = &[
    "small ONNX model",
    "req/s",
    "p50 µs",
    "p99 µs",
    "rows each",
    "CPU µs/req",
    "unbatched",
    "bare run µs",
    "bare/ours",
    "spread",
    "target",
    "",
];
/// With 16 requests in flight: share of the bare loop's rate on one core.
const MIN_RATIO: f64 = 0.6;
const BATCHED: &str = "batched";
const UNBATCHED: &str = "unbatched";

pub fn measure(options: &Options, table: &mut Table) {
    let rows = [Frontend::V2Http, Frontend::V2Grpc].into_iter();
    let rows = rows.flat_map(|frontend| [1, 16].map(|at_once| (frontend, at_once)));
    for (frontend, at_once) in rows {
        let row = format!("backends onnx-small {} c{at_once}", frontend.name());
        if options.wants(&row) && has_onnxruntime(options) {
            table.measured(row, one(options, frontend, at_once));
        }
    }
}

fn one(options: &Options, frontend: Frontend, at_once: usize) -> Result<Vec<String>> {
    let folder = empty()?;
    for (model, scheduling) in [(BATCHED, "dynamic_batching { }\n"), (UNBATCHED, "")] {
        write(folder.path(), model, scheduling)?;
    }
    let cores = Cores::share()?;
    let server = cores.as_server(|| Process::server(options, folder.path()))?;
    let file = folder.path().join(BATCHED).join("1/model.onnx");
    let mut bare = open_bare(options, &file)?;
    let before = Batches::read_statistics(&server, BATCHED)?;
    let pass = |model, length| {
        let exchanges = exchanges(frontend, Work::Perceptron(model));
        cores.as_load(|| load::pass(&server, frontend.wire(), &exchanges, at_once, length))
    };
    let mut bare_us = vec![bare_pass(options, &cores, &mut bare)?];
    let pairs =
        pairs::run(options, |length| pass(BATCHED, length), |length| pass(UNBATCHED, length))?;
    bare_us.push(bare_pass(options, &cores, &mut bare)?);
    let batches = Batches::read_statistics(&server, BATCHED)?.since(&before);
    let first = |number: fn(&load::Pass) -> f64| pairs.both(number).0;
    let (cpu, unbatched) = pairs.both(|pass| pass.cpu_us);
    let (bare, is_target) = (median(&bare_us), at_once > 1);
    let ratio = bare / cpu;
    Ok(vec![
        format!("{:.0}", first(|pass| pass.per_second)),
        format!("{:.0}", first(|pass| pass.p50_us)),
        format!("{:.0}", first(|pass| pass.p99_us)),
        format!("{:.2}", batches.mean()),
        format!("{cpu:.1}"),
        format!("{unbatched:.1}"),
        format!("{bare:.1}"),
        format!("{ratio:.2}"),
        pairs.spread(|pass| pass.cpu_us),
        if is_target { format!(">={MIN_RATIO}") } else { String::new() },
        if is_target { verdict(ratio >= MIN_RATIO).to_owned() } else { String::new() },
    ])
}

fn write(folder: &Path, model: &str, scheduling: &str) -> Result<()> {
    let version = folder.join(model).join("1");
    let wrap = |e: std::io::Error| format!("{}: {e}", version.display());
    fs::create_dir_all(&version).map_err(wrap)?;
    fs::write(version.join("model.onnx"), perceptron::file()).map_err(wrap)?;
    let text = format!(
        "name: \"{model}\"\nbackend: \"onnxruntime\"\nmax_batch_size: 16\n\
         input [ {{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [ {} ] }} ]\n\
         output [ {{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ {} ] }} ]\n\
         instance_group [ {{ kind: KIND_CPU count: 1 }} ]\n\
         parameters {{ key: \"intra_op_thread_count\" value: {{ string_value: \"1\" }} }}\n{scheduling}",
        perceptron::INPUTS,
        perceptron::OUTPUTS
    );
    fs::write(folder.join(model).join("config.pbtxt"), text).map_err(wrap)
}

fn open_bare(options: &Options, file: &Path) -> Result<BareModel> {
    let library = options.dist.join("lib/libonnxruntime.so.1");
    let row: Vec<f32> = (0..perceptron::INPUTS).map(|i| i as f32 * 0.5).collect();
    let expected = perceptron::outputs(&row);
    let (inputs, outputs) = ([("INPUT0", row)], [("OUTPUT0", perceptron::OUTPUTS)]);
    let mut bare = BareModel::open(&library, file, &inputs, &outputs)?;
    bare.run()?;
    match expected.iter().enumerate().all(|(i, value)| bare.value(1, i) == *value) {
        true => Ok(bare),
        false => Err("ONNX Runtime gave a wrong row".into()),
    }
}

/// Microseconds of CPU time of a run, on the server's core.
fn bare_pass(options: &Options, cores: &Cores, bare: &mut BareModel) -> Result<f64> {
    cores.as_server(|| {
        let (begin, cpu, mut runs) = (Instant::now(), thread_cpu(), 0);
        while begin.elapsed() < options.pass {
            bare.run()?;
            runs += 1;
        }
        Ok(thread_cpu().saturating_sub(cpu).as_secs_f64() * 1e6 / f64::from(runs))
    })
}
