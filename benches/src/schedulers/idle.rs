//! A hundred idle models: their cost at rest, and their effect on a busy model.

use super::models;
use super::models::{DYNAMIC, SIXTEEN};
use crate::Result;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::{Process, cpu_time};
use crate::requests::{Frontend, Work, exchanges};
use crate::table::{Table, verdict};
use std::time::Duration;

pub const COLUMNS: &[&str] = &[
    "a hundred idle models",
    "req/s",
    "without",
    "ratio",
    "CPU µs/req",
    "without",
    "spread",
    "target",
    "",
];
pub const REST_COLUMNS: &[&str] =
    &["at rest", "CPU ms", "in s", "switches", "idle RSS MB", "ready ms", "target", ""];
/// The throughput beside idle models relative to that without them.
const SAME: std::ops::RangeInclusive<f64> = 0.95..=1.05;
/// Microseconds of CPU time a second for a hundred idle models, less than one wake-up of each of
/// them.
const AT_REST_US: f64 = 100.0;
const SETTLED: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(5);
const ROWS: [(Frontend, &str, usize); 3] = [
    (Frontend::V2Grpc, DYNAMIC.0, 16),
    (Frontend::V2Grpc, SIXTEEN.0, 64),
    (Frontend::V2Http, DYNAMIC.0, 16),
];

pub fn measure(options: &Options, table: &mut Table, rest: &mut Table) -> Result<()> {
    let name = |(frontend, model, concurrency): (Frontend, &str, usize)| {
        format!("scheduler idle-100 {} {model} c{concurrency}", frontend.name())
    };
    let rows: Vec<_> = ROWS.into_iter().filter(|row| options.wants(&name(*row))).collect();
    let names = ["scheduler rest without", "scheduler rest idle-100"];
    let at_rest = names.map(|name| options.wants(name));
    if rows.is_empty() && at_rest == [false; 2] {
        return Ok(());
    }
    let busy = [DYNAMIC, SIXTEEN];
    let (few, many) = (models::folder(&busy)?, models::folder(&busy)?);
    models::hundred_idle(&many)?;
    let without = Process::server(options, few.path())?;
    let with = Process::server(options, many.path())?;
    if at_rest.contains(&true) {
        // Both at the same time, since neither disturbs the other. Before the first request, when
        // start-up work is done.
        std::thread::sleep(SETTLED);
        let before = [Usage::at(&without)?, Usage::at(&with)?];
        std::thread::sleep(REST);
        for (i, server) in [&without, &with].into_iter().enumerate().filter(|(i, _)| at_rest[*i]) {
            rest.measured(names[i].to_owned(), at_rest_row(server, &before[i]));
        }
    }
    for row in rows {
        table.measured(name(row), busy_row(options, row, &with, &without));
    }
    Ok(())
}

/// CPU time and context switches of a server so far.
struct Usage {
    cpu: Duration,
    switches: u64,
}

impl Usage {
    fn at(server: &Process) -> Result<Self> {
        Ok(Self { cpu: cpu_time(server.id())?, switches: server.switches()? })
    }
}

fn at_rest_row(server: &Process, before: &Usage) -> Result<Vec<String>> {
    let now = Usage::at(server)?;
    let cpu = now.cpu.saturating_sub(before.cpu);
    let switches = now.switches.saturating_sub(before.switches);
    let most = AT_REST_US * REST.as_secs_f64();
    let met = cpu.as_secs_f64() * 1e6 <= most;
    Ok(vec![
        format!("{:.2}", cpu.as_secs_f64() * 1e3),
        REST.as_secs().to_string(),
        switches.to_string(),
        format!("{:.1}", server.memory("VmRSS")?),
        format!("{:.1}", server.ready_after.as_secs_f64() * 1e3),
        format!("<={:.1} ms", most / 1e3),
        verdict(met).to_owned(),
    ])
}

fn busy_row(
    options: &Options,
    (frontend, model, concurrency): (Frontend, &'static str, usize),
    with: &Process,
    without: &Process,
) -> Result<Vec<String>> {
    let exchanges = exchanges(frontend, Work::Row(model));
    let pass =
        |server, length| load::pass(server, frontend.wire(), &exchanges, concurrency, length);
    let pairs = pairs::run(options, |length| pass(with, length), |length| pass(without, length))?;
    let (rate, rate_without) = pairs.both(|pass| pass.per_second);
    let (cpu, cpu_without) = pairs.both(|pass| pass.cpu_us);
    let ratio = pairs.ratio(|pass| pass.per_second);
    Ok(vec![
        format!("{rate:.0}"),
        format!("{rate_without:.0}"),
        format!("{ratio:.3}"),
        format!("{cpu:.1}"),
        format!("{cpu_without:.1}"),
        pairs.spread(|pass| pass.per_second),
        format!("{}-{}", SAME.start(), SAME.end()),
        verdict(SAME.contains(&ratio)).to_owned(),
    ])
}
