//! Cost of the latency histograms: a server with them compared with one without
//! (`--metrics-config=histogram_latencies=false`).

use crate::Result;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::{Table, verdict};

pub const COLUMNS: &[&str] = &pairs::columns("histograms");
/// Target: share of the throughput without histograms that remains.
const MIN_RATIO: f64 = 0.99;
const BYTES: usize = 64;
const AT_ONCE: usize = 16;

fn name(frontend: &Frontend) -> String {
    format!("metrics histograms {} {BYTES} c{AT_ONCE}", frontend.name())
}

pub fn measure(options: &Options) -> Result<Table> {
    let mut table = Table::new(COLUMNS);
    let mut frontends = vec![Frontend::V2Http, Frontend::V2Grpc];
    frontends.retain(|frontend| options.wants(&name(frontend)));
    if frontends.is_empty() {
        return Ok(table);
    }
    let models = repository::serving(options)?;
    let with = Process::server(options, models.path())?;
    let off = ["--metrics-config=histogram_latencies=false"];
    let without = Process::server_with(options, models.path(), &off)?;
    for frontend in frontends {
        table.measured(name(&frontend), row(options, frontend, &with, &without));
    }
    Ok(table)
}

fn row(
    options: &Options,
    frontend: Frontend,
    with: &Process,
    without: &Process,
) -> Result<Vec<String>> {
    let requests = exchanges(frontend, Work::Identity(BYTES));
    let pass = |server, length| load::pass(server, frontend.wire(), &requests, AT_ONCE, length);
    let pairs = pairs::run(options, |length| pass(with, length), |length| pass(without, length))?;
    let ratio = pairs.ratio(|pass| pass.per_second);
    let mut cells = pairs.cells();
    cells.extend([
        pairs.spread(|pass| pass.per_second),
        format!("ratio >={MIN_RATIO}"),
        verdict(ratio >= MIN_RATIO).to_owned(),
    ]);
    Ok(cells)
}
