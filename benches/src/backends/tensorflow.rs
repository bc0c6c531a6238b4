//! Cost of the TensorFlow plugin: a model of 16 FP32 values through host and plugin in this
//! process, compared with the same calls of TensorFlow's C API without them. CPU time, since
//! TensorFlow has threads of its own.

use super::shim::{InProcessModel, compile, in_this_process};
use crate::Result;
use crate::options::Options;
use crate::repository::empty;
use crate::schedulers::cpu::process_cpu;
use crate::table::{Table, median, spread, verdict};
use bytes::Bytes;
use std::fs;
use std::process::Command;
use std::time::Instant;

pub const COLUMNS: &[&str] =
    &["tensorflow", "us CPU a call", "C API", "added us", "spread", "target", ""];
const ROW: &str = "backends tensorflow identity 64";
/// Target: microseconds of CPU time that plugin and host add to a call.
const MAX_ADDED_US: f64 = 15.0;
const VALUES: usize = 16;
const ROUNDS: &str = "20000";
const GRAPH: &[u8] =
    include_bytes!("../../../tests/models/graphdef/identity_fp32_nobatch/1/model.graphdef");

pub fn measure(options: &Options, table: &mut Table) {
    // The benchmarks do not need TensorFlow: `cargo xtask runtimes --tensorflow`.
    let library = options.dist.join("lib/libtensorflow_cc.so.2");
    if options.wants(ROW) && library.exists() {
        table.measured(ROW.to_owned(), one(options));
    }
}

fn one(options: &Options) -> Result<Vec<String>> {
    let folder = empty()?;
    let (source, direct) = (folder.path().join("direct.c"), folder.path().join("direct"));
    let file = folder.path().join("1/model.graphdef");
    let write = |path: &std::path::Path, bytes: &[u8]| {
        fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
    };
    fs::create_dir(folder.path().join("1")).map_err(|e| e.to_string())?;
    write(&file, GRAPH)?;
    write(&source, include_bytes!("tensorflow.c"))?;
    compile(folder.path(), &["direct.c", "-ldl", "-o"], &direct)?;
    let library = options.dist.join("lib/libtensorflow_cc.so.2");

    let backends = in_this_process(options)?;
    let mut model = InProcessModel::new(&backends, "tensorflow", folder.path(), VALUES)?;
    let (mut bare, mut served) = (Vec::new(), Vec::new());
    for _ in 0..options.passes {
        let mut command = Command::new(&direct);
        let done = command.arg(&library).arg(&file).arg(ROUNDS).output();
        let done = done.map_err(|e| format!("{}: {e}", direct.display()))?;
        let text = String::from_utf8_lossy(&done.stdout);
        let ns: f64 =
            text.trim().parse().map_err(|_| String::from_utf8_lossy(&done.stderr).into_owned())?;
        bare.push(ns / 1000.0);
        served.push(pass(&mut model, options)?);
    }
    let added = median(&served) - median(&bare);
    Ok(vec![
        format!("{:.1}", median(&served)),
        format!("{:.1}", median(&bare)),
        format!("{added:.1}"),
        format!("{:.0} %", spread(&served) * 100.0),
        format!("<={MAX_ADDED_US:.0}"),
        verdict(added <= MAX_ADDED_US).to_owned(),
    ])
}

/// Microseconds of CPU time per call.
fn pass(model: &mut InProcessModel, options: &Options) -> Result<f64> {
    let data = Bytes::from(vec![7; 4 * VALUES]);
    let (begin, cpu, before) = (Instant::now(), process_cpu(), model.right());
    let mut calls = 0;
    while begin.elapsed() < options.pass {
        for _ in 0..1000 {
            model.call(&data)?;
        }
        calls += 1000;
    }
    let spent = process_cpu().saturating_sub(cpu);
    match model.right() - before {
        right if right == calls => Ok(spent.as_secs_f64() * 1e6 / calls as f64),
        right => Err(format!("{right} of {calls} responses are correct")),
    }
}
