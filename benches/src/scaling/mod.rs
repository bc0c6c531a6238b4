//! Scaling with models, their reloads, connections, instances and tensor sizes. Measured only with
//! `--only scaling`, since it takes minutes.

mod accepts; // new connections
mod connections; // busy connections
pub mod floor; // passes of server and floor
mod growth_plot;
mod idle; // idle connections
mod instances; // instances of a model
mod models; // loaded models
mod reloads; // models that are reloaded while another serves
mod shared_memory; // tensors in client shared memory
mod sizes; // tensor sizes

use crate::Result;
use crate::options::Options;
use crate::process::Process;
use crate::requests::Frontend;
use crate::table::{Table, verdict};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use growth_plot::GrowthPlot;

/// Largest factor by which the CPU time of a request may grow with models, connections or
/// instances.
const MOST_GROWTH: f64 = 1.3;
/// One frontend per wire: both generations share what is measured here.
const FRONTENDS: [Frontend; 2] = [Frontend::V2Http, Frontend::V2Grpc];
/// Bytes of a small tensor.
const SMALL: usize = 64;
/// Descriptors of a process besides its connections.
const OTHER_FILES: usize = 200;

/// Measures what `--only` selects. Growth goes to `plot`, too.
pub fn measure(options: &Options, plot: &mut GrowthPlot) -> Result<Vec<Table>> {
    if options.only.is_none() {
        return Ok(Vec::new());
    }
    let mut models = Table::new(models::COLUMNS);
    let mut connections = Table::new(connections::COLUMNS);
    let mut instances = Table::new(instances::COLUMNS);
    let mut idle = Table::new(idle::COLUMNS);
    let mut accepts = Table::new(accepts::COLUMNS);
    let mut reloads = Table::new(reloads::COLUMNS);
    let mut sizes = Table::new(sizes::COLUMNS);
    let mut shared = Table::new(shared_memory::COLUMNS);
    models::measure(options, &mut models, plot)?;
    connections::measure(options, &mut connections, plot)?;
    instances::measure(options, &mut instances, plot)?;
    idle::measure(options, &mut idle)?;
    accepts::measure(options, &mut accepts)?;
    reloads::measure(options, &mut reloads)?;
    sizes::measure(options, &mut sizes)?;
    shared_memory::measure(options, &mut shared)?;
    Ok(vec![models, connections, instances, idle, accepts, reloads, sizes, shared])
}

/// The rows of each frontend with each value that `options` selects by name.
fn selected(
    options: &Options,
    values: &[usize],
    name: fn((Frontend, usize)) -> String,
) -> Vec<(Frontend, usize)> {
    let rows =
        FRONTENDS.into_iter().flat_map(|frontend| values.iter().map(move |v| (frontend, *v)));
    rows.filter(|row| options.wants(&name(*row))).collect()
}

/// Growth beside its target: the last cell of a row.
fn growth_cell(growth: f64) -> String {
    format!("<={MOST_GROWTH}  {}", verdict(growth <= MOST_GROWTH))
}

/// Raises the descriptor limit of this process and of servers it starts later.
fn allow(connections: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let needed = (connections + OTHER_FILES) as u64;
    if limit.current.is_none_or(|most| most >= needed) {
        return Ok(());
    }
    if let Some(most) = limit.maximum.filter(|most| *most < needed) {
        return Err(format!(
            "{needed} open files are needed, the system grants {most} (ulimit -Hn)"
        ));
    }
    let more = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, more).map_err(|e| format!("cannot open {needed} files: {e}"))
}

/// Resident memory in MB: the last cell of a row.
fn rss(server: &Process) -> Result<String> {
    Ok(format!("{:.1}", server.memory("VmRSS")?))
}

/// `64`, `4K`, `16M`: the last part of a row's name.
fn size_name(bytes: usize) -> String {
    match bytes {
        n if n >= 1 << 20 => format!("{}M", n >> 20),
        n if n >= 1 << 10 => format!("{}K", n >> 10),
        n => n.to_string(),
    }
}
