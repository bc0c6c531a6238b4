//! The same models in this server and in Triton's, one request after the other in passes that take
//! turns.

use super::install;
use super::server::Triton;
use crate::Result;
use crate::cores::Cores;
use crate::load::{self, Target};
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::{Table, verdict};
use std::fs;
use tempfile::TempDir;

pub const COLUMNS: &[&str] = &[
    "beside Triton",
    "req/s",
    "of Triton",
    "ratio",
    "p99 µs",
    "of Triton",
    "ratio",
    "CPU µs/req",
    "of Triton",
    "ratio",
    "spread",
    "target",
    "",
];
const LARGE: usize = 16 << 20;
const SMALL: usize = 64;
/// 65,536 floats.
const JSON: usize = 256 << 10;

pub const IDENTITY: &str = r#"name: "identity"
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
parameters { key: "isolation" value { string_value: "none" } }
"#;
/// The Python model under the name of the work. It runs in a process of its own in both servers.
const ADD_SUB: &str = r#"name: "addsub_fp32"
backend: "python"
max_batch_size: 16
input [
  { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] }
]
output [
  { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] }
]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching { }
"#;

#[derive(Clone, Copy)]
struct Row {
    title: &'static str,
    frontend: Frontend,
    work: Work,
    concurrency: usize,
    limits: Limits,
}

/// Targets, relative to Triton's figures.
#[derive(Clone, Copy)]
struct Limits {
    /// Least throughput.
    rate: f64,
    /// Most CPU time for a request.
    cpu: f64,
    /// Largest 99th percentile of the latency.
    p99: f64,
}

const ANY: Limits = Limits { rate: 0.0, cpu: f64::INFINITY, p99: f64::INFINITY };

impl Limits {
    fn text(self) -> String {
        let mut all = Vec::new();
        if self.rate > 0.0 {
            all.push(format!("rate >={}", self.rate));
        }
        for (name, limit) in [("CPU", self.cpu), ("p99", self.p99)] {
            if limit.is_finite() {
                all.push(format!("{name} <={limit}"));
            }
        }
        all.join(" ")
    }
}

fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |title, frontend, work, concurrency, limits| {
        rows.push(Row { title, frontend, work, concurrency, limits });
    };
    for frontend in [Frontend::V2Http, Frontend::V2Grpc] {
        let equal = Limits { rate: 1.0, cpu: 1.0, ..ANY };
        row("python", frontend, Work::AddSub, 1, ANY);
        row("python", frontend, Work::AddSub, 16, equal);
        row("identity 64", frontend, Work::Identity(SMALL), 1, ANY);
        let half = Limits { rate: 1.2, cpu: 0.56, p99: 1.0 };
        row("identity 64", frontend, Work::Identity(SMALL), 16, half);
        let triple = Limits { rate: 3.0, ..ANY };
        row("identity 16M", frontend, Work::Identity(LARGE), 1, triple);
    }
    for (frontend, cpu) in [(Frontend::V2JsonIn, 0.7), (Frontend::V2JsonOut, 0.4)] {
        row("identity 256K", frontend, Work::Identity(JSON), 1, Limits { cpu, ..ANY });
    }
    rows.retain(|row| options.wants(&row.name()));
    rows
}

impl Row {
    fn name(&self) -> String {
        format!("triton {} {} c{}", self.frontend.name(), self.title, self.concurrency)
    }
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let rows = rows(options);
    if rows.is_empty() {
        return Ok(());
    }
    let libraries = install::backends(options)?;
    let models = models()?;
    let cores = Cores::share()?;
    println!("triton: {}", cores.describe());
    let flag = format!("--backend-directory={}", libraries.path().display());
    let ours = cores.as_server(|| Process::server_with(options, models.path(), &[&flag]))?;
    let triton = cores
        .as_server(|| Triton::start(options, models.path(), libraries.path(), &[], Work::AddSub))?;
    for row in rows {
        table.measured(row.name(), cores.as_load(|| one(options, &row, &ours, &triton)));
    }
    Ok(())
}

fn models() -> Result<TempDir> {
    let folder = repository::empty()?;
    repository::model(folder.path(), "identity", IDENTITY)?;
    repository::model(folder.path(), "addsub_fp32", ADD_SUB)?;
    let file = folder.path().join("addsub_fp32/1/model.py");
    fs::write(&file, include_str!("model.py")).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(folder)
}

fn one(options: &Options, row: &Row, ours: &Process, triton: &Triton) -> Result<Vec<String>> {
    let requests = exchanges(row.frontend, row.work);
    let wire = row.frontend.wire();
    let pass = |target: &Target, length| load::at(target, wire, &requests, row.concurrency, length);
    let ours = ours.target();
    let (with, beside) = (|length| pass(&ours, length), |length| pass(&triton.target, length));
    let pairs = pairs::alternate(options.passes, 2 * options.pass, with, beside)?;
    let [rates, tails, cpu] = [
        pairs.both(|pass| pass.per_second),
        pairs.both(|pass| pass.p99_us),
        pairs.both(|pass| pass.cpu_us),
    ];
    let ratio = pairs.ratio(|pass| pass.per_second);
    let cpu_ratio = pairs.ratio(|pass| pass.cpu_us);
    let tail_ratio = pairs.ratio(|pass| pass.p99_us);
    let limits = row.limits;
    let met = ratio >= limits.rate && cpu_ratio <= limits.cpu && tail_ratio <= limits.p99;
    Ok(vec![
        format!("{:.0}", rates.0),
        format!("{:.0}", rates.1),
        format!("{ratio:.2}"),
        format!("{:.0}", tails.0),
        format!("{:.0}", tails.1),
        format!("{tail_ratio:.2}"),
        format!("{:.1}", cpu.0),
        format!("{:.1}", cpu.1),
        format!("{cpu_ratio:.2}"),
        pairs.spread(|pass| pass.cpu_us),
        limits.text(),
        verdict(met).to_owned(),
    ])
}
