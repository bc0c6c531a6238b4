//! Tensors of 64 bytes to 64 MiB, one request at a time.

use super::{SMALL, floor, rss, selected, size_name};
use crate::Result;
use crate::load;
use crate::options::{Floor, Options};
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges, floor_exchanges};
use crate::table::Table;

pub const COLUMNS: &[&str] = &[
    "sizes",
    "req/s",
    "MB/s",
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
const LARGEST: usize = 64 << 20;

fn name((frontend, bytes): (Frontend, usize)) -> String {
    format!("scaling size {} {} c1", frontend.name(), size_name(bytes))
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let sizes = std::iter::successors(Some(SMALL), |size| Some(size * 4));
    let sizes: Vec<_> = sizes.take_while(|size| *size <= LARGEST).collect();
    let rows = selected(options, &sizes, name);
    if rows.is_empty() {
        return Ok(());
    }
    let models = repository::serving(options)?;
    let server = Process::server(options, models.path())?;
    let hyper = Process::floor(Floor::Hyper)?;
    let tonic = Process::floor(Floor::Tonic)?;
    for row in rows {
        let floor = if row.0.floor() == Floor::Hyper { &hyper } else { &tonic };
        table.measured(name(row), one(options, row, &server, floor));
    }
    Ok(())
}

fn one(
    options: &Options,
    (frontend, bytes): (Frontend, usize),
    server: &Process,
    floor: &Process,
) -> Result<Vec<String>> {
    let work = Work::Identity(bytes);
    let (to_server, to_floor) = (exchanges(frontend, work), floor_exchanges(frontend, work));
    let pass =
        |process, exchanges| load::pass(process, frontend.wire(), exchanges, 1, options.pass);
    let passes = floor::compare(options, || pass(server, &to_server), || pass(floor, &to_floor))?;
    // In both directions.
    let rate = format!("{:.0}", passes.server(|pass| pass.per_second) * bytes as f64 / 1e6);
    Ok([vec![passes.rate(), rate], passes.cells(), vec![rss(server)?]].concat())
}
