//! What dynamic batching adds to a request's CPU time, end to end.

use super::cpu::MAX_ADDED_US;
use super::models;
use super::models::{DYNAMIC, NO_SCHEDULER, SIXTEEN};
use crate::Result;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::{Table, verdict};

pub const COLUMNS: &[&str] = &[
    "dynamic batching",
    "req/s",
    "without",
    "p50 µs",
    "without",
    "CPU µs/req",
    "without",
    "added",
    "spread",
    "target",
    "",
];

struct Row {
    frontend: Frontend,
    model: &'static str,
    concurrency: usize,
}

impl Row {
    fn name(&self) -> String {
        format!("scheduler added {} {} c{}", self.frontend.name(), self.model, self.concurrency)
    }
}

fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for frontend in [Frontend::V2Grpc, Frontend::V2Http] {
        for concurrency in [1, 4, 16, 64] {
            rows.push(Row { frontend, model: DYNAMIC.0, concurrency });
        }
        // With fewer concurrent requests it would measure the delay of batches that cannot become
        // full.
        rows.push(Row { frontend, model: SIXTEEN.0, concurrency: 64 });
    }
    rows.retain(|row| options.wants(&row.name()));
    rows
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let rows = rows(options);
    if rows.is_empty() {
        return Ok(());
    }
    let folder = models::folder(&[NO_SCHEDULER, DYNAMIC, SIXTEEN])?;
    let server = Process::server(options, folder.path())?;
    pairs::rows(&server, &rows, table, Row::name, |row, server| one(options, row, server));
    Ok(())
}

fn one(options: &Options, row: &Row, server: &Process) -> Result<Vec<String>> {
    let pass = |model, length| {
        let exchanges = exchanges(row.frontend, Work::Row(model));
        load::pass(server, row.frontend.wire(), &exchanges, row.concurrency, length)
    };
    let (with, without) = (|length| pass(row.model, length), |length| pass(NO_SCHEDULER.0, length));
    let pairs = pairs::run(options, with, without)?;
    let (rate, rate_without) = pairs.both(|pass| pass.per_second);
    let (p50, p50_without) = pairs.both(|pass| pass.p50_us);
    let (cpu, cpu_without) = pairs.both(|pass| pass.cpu_us);
    let added = pairs.difference(|pass| pass.cpu_us);
    Ok(vec![
        format!("{rate:.0}"),
        format!("{rate_without:.0}"),
        format!("{p50:.0}"),
        format!("{p50_without:.0}"),
        format!("{cpu:.1}"),
        format!("{cpu_without:.1}"),
        format!("{added:+.1}"),
        pairs.spread(|pass| pass.cpu_us),
        format!("<={MAX_ADDED_US:.0}"),
        verdict(added <= MAX_ADDED_US).to_owned(),
    ])
}
