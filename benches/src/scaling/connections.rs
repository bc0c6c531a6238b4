//! Busy connections with one request in flight each.

use super::{GrowthPlot, SMALL, allow, floor, growth_cell, rss, selected};
use crate::Result;
use crate::load;
use crate::options::Options;
use crate::pairs;
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
    "of ten",
    "growth",
    "target",
];
/// Pass length per connection; a request takes a tenth of it.
const EACH: Duration = Duration::from_micros(200);
const CONNECTIONS: [usize; 5] = [1, 10, 100, 1000, 10_000];
/// What more connections are compared with. Fewer cost more: each request wakes a thread.
const FEW: usize = 10;

fn name((frontend, connections): (Frontend, usize)) -> String {
    format!("scaling connections {} {connections}", frontend.name())
}

pub fn measure(options: &Options, table: &mut Table, plot: &mut GrowthPlot) -> Result<()> {
    for row in selected(options, &CONNECTIONS, name) {
        // New servers, so that memory is that of this row. They inherit the descriptor limit.
        let cells = allow(row.1).and_then(|()| one(options, row, plot));
        table.measured(name(row), cells);
    }
    Ok(())
}

fn one(
    options: &Options,
    (frontend, connections): (Frontend, usize),
    plot: &mut GrowthPlot,
) -> Result<Vec<String>> {
    let models = repository::serving(options)?;
    let server = Process::server(options, models.path())?;
    let floor = Process::floor(frontend.floor())?;
    let work = Work::Identity(SMALL);
    let (to_server, to_floor) = (exchanges(frontend, work), floor_exchanges(frontend, work));
    // Long enough for a few responses on each connection.
    let length = options.pass.max(EACH * connections as u32);
    let pass = |process, exchanges, connections, length| {
        load::pass_per_connection(process, frontend.wire(), exchanges, connections, length)
    };
    let passes = floor::compare(
        options,
        || pass(&server, &to_server, connections, length),
        || pass(&floor, &to_floor, connections, length),
    )?;
    let memory = rss(&server)?;
    let growth = if connections > FEW {
        let pairs = pairs::alternate(
            options.passes,
            length,
            |length| pass(&server, &to_server, connections, length),
            |_| pass(&server, &to_server, FEW, options.pass),
        )?;
        let growth = pairs.ratio(|pass| pass.cpu_us);
        plot.add("connections", frontend.name().to_owned(), connections, growth);
        let (_, few) = pairs.both(|pass| pass.cpu_us);
        vec![format!("{few:.1}"), format!("{growth:.2}"), growth_cell(growth)]
    } else {
        if connections == FEW {
            plot.add("connections", frontend.name().to_owned(), connections, 1.0);
        }
        Vec::new()
    };
    Ok([vec![passes.rate()], passes.cells(), vec![memory], growth].concat())
}
