//! Busy connections with one request in flight each.

use super::row::{self, Beside};
use super::{FRONTENDS, SMALL, allow};
use crate::Result;
use crate::load;
use crate::options::Options;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges, floor_exchanges};
use crate::table::Table;
use std::time::Duration;

pub const COLUMNS: &[&str] = &[
    "connections",
    "req/s",
    "p50 µs",
    "p99 µs",
    "CPU µs/req",
    "floor req/s",
    "floor p50",
    "floor p99",
    "floor CPU",
    "ratio",
    "spread",
    "RSS MB",
];
/// Pass length per connection; a request takes a tenth of it.
const EACH: Duration = Duration::from_micros(200);
const CONNECTIONS: [usize; 5] = [1, 10, 100, 1000, 10_000];

fn name((frontend, connections): (Frontend, usize)) -> String {
    format!("scaling connections {} {connections}", frontend.name())
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let all =
        FRONTENDS.into_iter().flat_map(|frontend| CONNECTIONS.map(|number| (frontend, number)));
    let rows: Vec<_> = all.filter(|row| options.wants(&name(*row))).collect();
    for row in rows {
        // New servers, so that memory is that of this row. They inherit the descriptor limit.
        match allow(row.1).and_then(|()| one(options, row)) {
            Ok(cells) => table.row([vec![name(row)], cells].concat()),
            Err(problem) => table.failure(&name(row), &problem),
        }
    }
    Ok(())
}

fn one(options: &Options, (frontend, connections): (Frontend, usize)) -> Result<Vec<String>> {
    let models = repository::serving(options)?;
    let logs = repository::empty()?;
    let server = Process::server(options, models.path(), logs.path())?;
    let floor = Process::floor(frontend.floor(), logs.path())?;
    let work = Work::Identity(SMALL);
    let (ours, theirs) = (exchanges(frontend, work), floor_exchanges(frontend, work));
    // Long enough for a few responses on each connection.
    let length = options.pass.max(EACH * connections as u32);
    let pass = |process, exchanges| {
        load::pass_per_connection(process, frontend.wire(), exchanges, connections, length)
    };
    let beside = row::run(options, || pass(&server, &ours), || pass(&floor, &theirs))?;
    Ok(cells(&beside, server.memory("VmRSS")?))
}

fn cells(beside: &Beside, memory: f64) -> Vec<String> {
    vec![
        format!("{:.0}", beside.ours(|pass| pass.per_second)),
        format!("{:.0}", beside.ours(|pass| pass.p50_us)),
        format!("{:.0}", beside.ours(|pass| pass.p99_us)),
        format!("{:.1}", beside.ours(|pass| pass.cpu_us)),
        format!("{:.0}", beside.floor(|pass| pass.per_second)),
        format!("{:.0}", beside.floor(|pass| pass.p50_us)),
        format!("{:.0}", beside.floor(|pass| pass.p99_us)),
        format!("{:.1}", beside.floor(|pass| pass.cpu_us)),
        format!("{:.2}", beside.ratio()),
        beside.spread(),
        format!("{memory:.1}"),
    ]
}
