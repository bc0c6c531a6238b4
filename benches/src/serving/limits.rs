//! The same work without a server: a lower bound for the latency.

use super::add_sub::AddSub;
use super::cases::{SMALL, model_name, size};
use crate::Result;
use crate::backends::shim::{InProcessModel, in_this_process};
use crate::cores::Cores;
use crate::histogram::Histogram;
use crate::options::Options;
use crate::repository;
use crate::requests::Work;
use crate::schedulers::cpu::thread_cpu;
use crate::table::{Table, median, number, spread};
use bytes::Bytes;
use std::time::Instant;

/// Names in the column `client`.
const PLUGIN: &str = "plugin call"; // the host's side of the plugin interface, and the test plugin
const ONNX: &str = "ONNX Runtime"; // the framework alone

/// Returns p50 of the smallest call of the test plugin, if selected.
pub fn measure(options: &Options, cores: &Cores, table: &mut Table) -> Option<f64> {
    let row = |table: &mut Table,
               work: Work,
               client: &str,
               passes: &dyn Fn() -> Result<Passes>|
     -> Option<f64> {
        let labels = ["in-process", model_name(work), &size(work.bytes()), "1", "1", client];
        let name = format!("in-process {} {} c1 {client}", labels[1], labels[2]);
        if !options.wants(&name) {
            return None;
        }
        let labels = labels.map(str::to_owned);
        // On the servers' cores.
        match cores.as_server(passes) {
            Ok(passes) => {
                table.row([labels.to_vec(), passes.cells()].concat());
                Some(median(&passes.p50_us))
            }
            Err(problem) => {
                table.failed_row(labels.to_vec(), &name, &problem);
                None
            }
        }
    };
    let smallest = row(table, Work::Identity(SMALL), PLUGIN, &|| plugin(options, SMALL));
    for bytes in [4 << 20, 16 << 20] {
        row(table, Work::Identity(bytes), PLUGIN, &|| plugin(options, bytes));
    }
    if repository::has_onnxruntime(options) {
        row(table, Work::AddSub, ONNX, &|| onnx(options));
    }
    smallest
}

#[derive(Default)]
struct Passes {
    per_second: Vec<f64>,
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
    p999_us: Vec<f64>,
    max_us: Vec<f64>,
    cpu_us: Vec<f64>,
}

impl Passes {
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![
            number(median(&self.per_second), 0),
            number(median(&self.p50_us), 1),
            number(median(&self.p99_us), 1),
            number(median(&self.p999_us), 1),
            number(median(&self.max_us), 1),
            number(median(&self.cpu_us), 1),
        ];
        // No process, no floor.
        cells.extend(["-"; 6].map(str::to_owned));
        cells.push(format!("{:.0} %", spread(&self.cpu_us) * 100.0));
        cells
    }

    /// Sequential calls for the length of a pass.
    fn pass(&mut self, options: &Options, mut call: impl FnMut() -> Result<()>) -> Result<()> {
        let mut latencies = Histogram::new();
        call()?;
        let (begin, cpu) = (Instant::now(), thread_cpu());
        while begin.elapsed() < options.pass {
            let begin = Instant::now();
            call()?;
            latencies.record(begin.elapsed());
        }
        let calls = latencies.count() as f64;
        self.per_second.push(calls / begin.elapsed().as_secs_f64());
        self.p50_us.push(latencies.quantile(0.5));
        self.p99_us.push(latencies.quantile(0.99));
        self.p999_us.push(latencies.quantile(0.999));
        self.max_us.push(latencies.quantile(1.0));
        self.cpu_us.push(thread_cpu().saturating_sub(cpu).as_secs_f64() * 1e6 / calls);
        Ok(())
    }
}

fn plugin(options: &Options, bytes: usize) -> Result<Passes> {
    let folder = repository::empty()?;
    let backends = in_this_process(options)?;
    let mut model = InProcessModel::new(&backends, "probe", folder.path(), bytes / 4)?;
    let data = Bytes::from(vec![7; bytes]);
    let mut passes = Passes::default();
    for _ in 0..options.passes {
        let before = model.right();
        let mut calls = 0;
        passes.pass(options, || {
            calls += 1;
            model.call(&data)
        })?;
        if model.right() - before != calls {
            return Err("a wrong response of the test plugin".into());
        }
    }
    Ok(passes)
}

fn onnx(options: &Options) -> Result<Passes> {
    let library = options.dist.join("lib/libonnxruntime.so.1");
    let mut model = AddSub::open(&library, &options.models.join("addsub_fp32/1/model.onnx"))?;
    let mut passes = Passes::default();
    for _ in 0..options.passes {
        passes.pass(options, || model.call())?;
    }
    Ok(passes)
}
