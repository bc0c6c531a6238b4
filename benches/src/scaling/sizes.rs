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
/// Sizes that are also compared with a bare socket.
const LARGE: usize = 1 << 20;

fn name((frontend, bytes): (Frontend, usize)) -> String {
    format!("scaling size {} {} c1", frontend.name(), size_name(bytes))
}

fn socket_name(row: (Frontend, usize)) -> String {
    format!("{} socket", name(row))
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let sizes = std::iter::successors(Some(SMALL), |size| Some(size * 4));
    let sizes: Vec<_> = sizes.take_while(|size| *size <= LARGEST).collect();
    let rows = selected(options, &sizes, name);
    let large: Vec<_> = sizes.into_iter().filter(|size| *size >= LARGE).collect();
    let socket_rows = selected(options, &large, socket_name);
    if rows.is_empty() && socket_rows.is_empty() {
        return Ok(());
    }
    let models = repository::serving(options)?;
    let server = Process::server(options, models.path())?;
    let hyper = Process::floor(Floor::Hyper)?;
    let tonic = Process::floor(Floor::Tonic)?;
    for row in rows {
        let floor = if row.0.floor() == Floor::Hyper { &hyper } else { &tonic };
        table.measured(name(row), one(options, row, &server, (row.0, floor)));
    }
    // The same request over HTTP, whose server does nothing but receive and send.
    let socket = Process::floor(Floor::Socket)?;
    for row in socket_rows {
        let floor = (Frontend::V2Http, &socket);
        table.measured(socket_name(row), one(options, row, &server, floor));
    }
    Ok(())
}

fn one(
    options: &Options,
    (frontend, bytes): (Frontend, usize),
    server: &Process,
    (floor_frontend, floor): (Frontend, &Process),
) -> Result<Vec<String>> {
    let work = Work::Identity(bytes);
    let (to_server, to_floor) = (exchanges(frontend, work), floor_exchanges(floor_frontend, work));
    let pass = |process, frontend: Frontend, exchanges| {
        load::pass(process, frontend.wire(), exchanges, 1, options.pass)
    };
    let passes = floor::compare(
        options,
        || pass(server, frontend, &to_server),
        || pass(floor, floor_frontend, &to_floor),
    )?;
    // In both directions.
    let rate = format!("{:.0}", passes.server(|pass| pass.per_second) * bytes as f64 / 1e6);
    Ok([vec![passes.rate(), rate], passes.cells(), vec![rss(server)?]].concat())
}
