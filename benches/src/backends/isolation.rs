//! Cost of isolation: the same model local and isolated, in one server.

use crate::Result;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::{Table, verdict};
use std::fs;
use tempfile::TempDir;

pub const COLUMNS: &[&str] =
    &["isolated", "req/s", "local", "ratio", "p50 µs", "local", "added", "spread", "target", ""];
const LOCAL: &str = "local";
const ISOLATED: &str = "isolated";
/// Target: latency that isolation adds to a small request, in microseconds.
const MAX_ADDED_US: f64 = 6.0;
/// Target: share of the local throughput that remains for large tensors.
const MIN_RATIO: f64 = 0.8;
/// The same for small ones, with several callers.
const MIN_SMALL_RATIO: f64 = 0.7;
const LARGE: usize = 1 << 20;

struct Row {
    frontend: Frontend,
    bytes: usize,
    concurrency: usize,
}

impl Row {
    fn name(&self) -> String {
        let bytes = if self.bytes == LARGE { "1M".to_owned() } else { self.bytes.to_string() };
        format!("backends isolated {} {bytes} c{}", self.frontend.name(), self.concurrency)
    }
}

fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for frontend in [Frontend::V1Http, Frontend::V2Http, Frontend::V2Grpc] {
        for (bytes, concurrency) in [(64, 1), (64, 16), (LARGE, 1), (LARGE, 4)] {
            rows.push(Row { frontend, bytes, concurrency });
        }
    }
    rows.retain(|row| options.wants(&row.name()));
    rows
}

/// Two models of the test plugin, which copies its input.
fn models() -> Result<TempDir> {
    let folder = repository::empty()?;
    for (name, isolation) in [(LOCAL, "none"), (ISOLATED, "process")] {
        let version = folder.path().join(name).join("1");
        fs::create_dir_all(&version).map_err(|e| format!("{}: {e}", version.display()))?;
        let file = folder.path().join(name).join("config.pbtxt");
        let text = format!(
            "name: \"{name}\"\nbackend: \"probe\"\n\
             input [ {{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n\
             output [ {{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n\
             parameters {{ key: \"isolation\" value {{ string_value: \"{isolation}\" }} }}\n"
        );
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(folder)
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let rows = rows(options);
    if rows.is_empty() {
        return Ok(());
    }
    let folder = models()?;
    let server = Process::server(options, folder.path())?;
    pairs::rows(&server, &rows, table, Row::name, |row, server| one(options, row, server));
    Ok(())
}

fn one(options: &Options, row: &Row, server: &Process) -> Result<Vec<String>> {
    let pass = |model, length| {
        let exchanges = exchanges(row.frontend, Work::Echo(model, row.bytes));
        load::pass(server, row.frontend.wire(), &exchanges, row.concurrency, length)
    };
    let pairs = pairs::run(options, |length| pass(ISOLATED, length), |length| pass(LOCAL, length))?;
    let (rate, rate_local) = pairs.both(|pass| pass.per_second);
    let (p50, p50_local) = pairs.both(|pass| pass.p50_us);
    let ratio = pairs.ratio(|pass| pass.per_second);
    let added = pairs.difference(|pass| pass.p50_us);
    let (target, good) = match (row.bytes, row.concurrency) {
        (LARGE, _) => (format!("ratio >={MIN_RATIO}"), verdict(ratio >= MIN_RATIO)),
        (_, 1) => (format!("added <={MAX_ADDED_US:.0}"), verdict(added <= MAX_ADDED_US)),
        _ => (format!("ratio >={MIN_SMALL_RATIO}"), verdict(ratio >= MIN_SMALL_RATIO)),
    };
    Ok(vec![
        format!("{rate:.0}"),
        format!("{rate_local:.0}"),
        format!("{ratio:.2}"),
        format!("{p50:.0}"),
        format!("{p50_local:.0}"),
        format!("{added:+.1}"),
        pairs.spread(|pass| pass.p50_us),
        target,
        good.to_owned(),
    ])
}
