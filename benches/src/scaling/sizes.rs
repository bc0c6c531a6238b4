//! Tensors of 64 bytes to 64 MiB, one request at a time.

use super::{FRONTENDS, SMALL, row, size_name};
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
    let sizes = || std::iter::successors(Some(SMALL), |size| Some(size * 4));
    let sizes = || sizes().take_while(|size| *size <= LARGEST);
    let all = FRONTENDS.into_iter().flat_map(|frontend| sizes().map(move |size| (frontend, size)));
    let rows: Vec<_> = all.filter(|row| options.wants(&name(*row))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let models = repository::serving(options)?;
    let logs = repository::empty()?;
    let server = Process::server(options, models.path(), logs.path())?;
    let hyper = Process::floor(Floor::Hyper, logs.path())?;
    let tonic = Process::floor(Floor::Tonic, logs.path())?;
    for row in rows {
        let floor = if row.0.floor() == Floor::Hyper { &hyper } else { &tonic };
        match one(options, row, &server, floor) {
            Ok(cells) => table.row([vec![name(row)], cells].concat()),
            Err(problem) => table.failure(&name(row), &problem),
        }
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
    let (ours, theirs) = (exchanges(frontend, work), floor_exchanges(frontend, work));
    let pass =
        |process, exchanges| load::pass(process, frontend.wire(), exchanges, 1, options.pass);
    let beside = row::run(options, || pass(server, &ours), || pass(floor, &theirs))?;
    let rate = beside.ours(|pass| pass.per_second);
    Ok(vec![
        format!("{rate:.0}"),
        // In both directions.
        format!("{:.0}", rate * bytes as f64 / 1e6),
        format!("{:.0}", beside.ours(|pass| pass.p50_us)),
        format!("{:.0}", beside.ours(|pass| pass.p99_us)),
        format!("{:.1}", beside.ours(|pass| pass.cpu_us)),
        format!("{:.0}", beside.floor(|pass| pass.per_second)),
        format!("{:.0}", beside.floor(|pass| pass.p50_us)),
        format!("{:.0}", beside.floor(|pass| pass.p99_us)),
        format!("{:.1}", beside.floor(|pass| pass.cpu_us)),
        format!("{:.2}", beside.ratio()),
        beside.spread(),
        format!("{:.1}", server.memory("VmRSS")?),
    ])
}
