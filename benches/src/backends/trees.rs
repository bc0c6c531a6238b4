//! Cost of the plugin of decision trees: the digits models of the examples through host and plugin
//! in this process, compared with the same calls of the C interfaces of LightGBM and XGBoost, with
//! one thread. CPU time.

use super::shim::{InProcessCase, InProcessModel, compile, in_this_process};
use crate::Result;
use crate::options::Options;
use crate::repository::empty;
use crate::schedulers::cpu::process_cpu;
use crate::table::{Table, median, spread, verdict};
use bytes::Bytes;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput};

pub const COLUMNS: &[&str] =
    &["trees", "us CPU a call", "C API", "added us", "ratio", "spread", "target", ""];
/// Target for one row: microseconds of CPU time that plugin and host add to a call.
const MAX_ADDED_US: f64 = 3.0;
/// Target for many rows: share of the C interface's speed.
const MIN_RATIO: f64 = 0.95;
const FEATURES: usize = 64;
const CLASSES: usize = 10;

/// A framework, its library, and its model.
const FRAMEWORKS: [(&str, &str, &str); 2] = [
    ("lightgbm", "lib_lightgbm.so", "examples/models-trees/digits_lightgbm/1/model.txt"),
    ("xgboost", "libxgboost.so", "examples/models-trees/digits_xgboost/1/model.ubj"),
];

pub fn measure(options: &Options, table: &mut Table) {
    for framework in FRAMEWORKS {
        for rows in [1, 1000] {
            let row = format!("backends trees {} {rows}", framework.0);
            // The benchmarks do not need the libraries: `cargo xtask runtimes --trees`.
            let library = options.dist.join("lib").join(framework.1);
            if options.wants(&row) && library.exists() {
                table.measured(row, one(options, framework, &library, rows));
            }
        }
    }
}

fn one(
    options: &Options,
    (platform, _, model): (&str, &str, &str),
    library: &Path,
    rows: usize,
) -> Result<Vec<String>> {
    let folder = empty()?;
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(model);
    let name = model.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let version = folder.path().join("1");
    let wrap = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir(&version).map_err(|e| wrap(&version, e))?;
    fs::copy(&model, version.join(name)).map_err(|e| wrap(&model, e))?;
    let (source, direct) = (folder.path().join("direct.c"), folder.path().join("direct"));
    fs::write(&source, include_bytes!("trees.c")).map_err(|e| wrap(&source, e))?;
    compile(folder.path(), &["direct.c", "-ldl", "-o"], &direct)?;

    let data = rows_of_pixels(rows);
    let (input, output) = (folder.path().join("input"), folder.path().join("output"));
    fs::write(&input, &data).map_err(|e| wrap(&input, e))?;
    let bare = |rounds: usize| -> Result<f64> {
        let mut command = Command::new(&direct);
        command.args([platform.as_ref(), library.as_os_str(), model.as_os_str()]);
        command.args([input.as_os_str(), output.as_os_str()]).arg(rounds.to_string());
        let done = command.output().map_err(|e| wrap(&direct, e))?;
        let text = String::from_utf8_lossy(&done.stdout);
        let ns: f64 =
            text.trim().parse().map_err(|_| String::from_utf8_lossy(&done.stderr).into_owned())?;
        Ok(ns / 1000.0)
    };
    let first = bare(10)?;
    let rounds = (options.pass.as_micros() as f64 / first).max(10.0) as usize;
    let expected = Bytes::from(fs::read(&output).map_err(|e| wrap(&output, e))?);

    let backends = in_this_process(options)?;
    let case = InProcessCase {
        config: config(platform, name),
        dir: folder.path(),
        shape: vec![rows as i64, FEATURES as i64],
        expected: Some(expected),
        threads: 1,
    };
    let mut served = InProcessModel::open(&backends, case)?;
    let (mut direct_us, mut served_us) = (Vec::new(), Vec::new());
    for _ in 0..2 * options.passes {
        direct_us.push(bare(rounds)?);
        served_us.push(pass(&mut served, options, &data)?);
    }
    let (own, bare) = (median(&served_us), median(&direct_us));
    let (added, ratio) = (own - bare, bare / own);
    let (target, met) = match rows {
        1 => (format!("<={MAX_ADDED_US:.0} us"), added <= MAX_ADDED_US),
        _ => (format!(">={MIN_RATIO}"), ratio >= MIN_RATIO),
    };
    Ok(vec![
        format!("{own:.1}"),
        format!("{bare:.1}"),
        format!("{added:.1}"),
        format!("{ratio:.2}"),
        format!("{:.0} %", spread(&served_us) * 100.0),
        target,
        verdict(met).to_owned(),
    ])
}

/// Numbers between 0 and 1 that differ from row to row.
fn rows_of_pixels(rows: usize) -> Bytes {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 28) as f32 / 16.0).to_le_bytes()
    };
    (0..rows * FEATURES).flat_map(|_| next()).collect::<Vec<u8>>().into()
}

fn config(platform: &str, file: &str) -> ModelConfig {
    let input = ModelInput {
        name: "input__0".into(),
        data_type: DataType::TypeFp32.into(),
        dims: vec![-1, FEATURES as i64],
        ..Default::default()
    };
    let output = ModelOutput {
        name: "output__0".into(),
        data_type: DataType::TypeFp32.into(),
        dims: vec![-1, CLASSES as i64],
        ..Default::default()
    };
    ModelConfig {
        name: "identity".into(),
        backend: "fil".into(),
        platform: platform.into(),
        default_model_filename: file.into(),
        input: vec![input],
        output: vec![output],
        ..Default::default()
    }
}

/// Microseconds of CPU time per call.
fn pass(model: &mut InProcessModel, options: &Options, data: &Bytes) -> Result<f64> {
    let (begin, cpu, before) = (Instant::now(), process_cpu(), model.right());
    let mut calls = 0;
    while begin.elapsed() < options.pass {
        for _ in 0..10 {
            model.call(data)?;
        }
        calls += 10;
    }
    let spent = process_cpu().saturating_sub(cpu);
    match model.right() - before {
        right if right == calls => Ok(spent.as_secs_f64() * 1e6 / calls as f64),
        right => Err(format!("{right} of {calls} responses are correct")),
    }
}
