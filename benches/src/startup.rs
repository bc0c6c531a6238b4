//! Startup time and idle memory.

use crate::Result;
use crate::options::Options;
use crate::process::Process;
use crate::repository;
use crate::status;
use crate::table::{Table, median, verdict};
use std::path::Path;
use std::time::{Duration, Instant};

pub const COLUMNS: &[&str] = &["start", "ready ms", "idle RSS MB", "targets", ""];
/// Memory needed only at startup is released after this time.
const SETTLED: Duration = Duration::from_millis(300);

struct Targets {
    ready_ms: Option<f64>,
    rss_mb: f64,
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    if options.wants("start empty") {
        let models = repository::empty()?;
        let targets = Targets { ready_ms: Some(50.0), rss_mb: 20.0 };
        row(options, table, "start empty", models.path(), &targets);
    }
    if options.wants("start seven-onnx") && repository::has_onnxruntime(options) {
        let models = repository::seven(options)?;
        let targets = Targets { ready_ms: None, rss_mb: 50.0 };
        row(options, table, "start seven-onnx", models.path(), &targets);
    }
    if options.wants("start thousand-onnx") && repository::has_onnxruntime(options) {
        let models = repository::thousand(options)?;
        if let Err(problem) = thousand(options, table, models.path()) {
            table.failure("start thousand-onnx", &problem);
        }
    }
    Ok(())
}

/// A thousand small models: the load at start, and the repository index.
fn thousand(options: &Options, table: &mut Table, models: &Path) -> Result<()> {
    let server = Process::server(options, models)?;
    let ready = server.ready_after.as_secs_f64() * 1e3;
    let rss = format!("{:.1}", server.memory("VmRSS")?);
    let address = server.http.ok_or("the server has no HTTP address")?;
    let mut times = Vec::new();
    for _ in 0..20 {
        let begin = Instant::now();
        status::post(address, "/v2/repository/index", "{}")?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let index = median(&times);
    let mut row = |name: &str, ms: f64, limit: f64| {
        let target = format!("<{limit:.0} ms");
        let verdict = verdict(ms < limit).to_owned();
        table.row(vec![name.to_owned(), format!("{ms:.1}"), rss.clone(), target, verdict]);
    };
    row("start thousand-onnx", ready, 60_000.0);
    row("index of thousand-onnx", index, 20.0);
    Ok(())
}

fn row(options: &Options, table: &mut Table, name: &str, models: &Path, targets: &Targets) {
    let (mut ready, mut rss) = (Vec::new(), Vec::new());
    for _ in 0..options.passes.max(3) {
        match start(options, models) {
            Ok((ms, mb)) => {
                ready.push(ms);
                rss.push(mb);
            }
            Err(problem) => return table.failure(name, &problem),
        }
    }
    let (ready, rss) = (median(&ready), median(&rss));
    let met = rss < targets.rss_mb && targets.ready_ms.is_none_or(|limit| ready < limit);
    let ready_target = targets.ready_ms.map_or(String::new(), |ms| format!("<{ms:.0} ms "));
    table.row(vec![
        name.to_owned(),
        format!("{ready:.1}"),
        format!("{rss:.1}"),
        format!("{ready_target}<{:.0} MB", targets.rss_mb),
        verdict(met).to_owned(),
    ]);
}

/// Milliseconds until ready, and megabytes afterwards.
fn start(options: &Options, models: &Path) -> Result<(f64, f64)> {
    let server = Process::server(options, models)?;
    std::thread::sleep(SETTLED);
    Ok((server.ready_after.as_secs_f64() * 1e3, server.memory("VmRSS")?))
}
