//! Benchmarks of the schedulers: alone in this process, in the server, and with many models loaded.

mod added; // CPU time that dynamic batching adds to a request
mod batcher; // batching decisions alone
pub mod batches; // the server's statistics
pub mod cpu;
mod full; // share of full batches
mod idle; // idle models
mod models;
mod queue; // the queue around a batcher
pub mod samples; // requests without clients
mod steps;
mod streams; // sequences

use crate::Result;
use crate::options::Options;
use crate::table::Table;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    let mut batchers = Table::new(batcher::COLUMNS);
    let mut queues = Table::new(queue::COLUMNS);
    let mut full = Table::new(full::COLUMNS);
    let mut added = Table::new(added::COLUMNS);
    let (mut idle, mut rest) = (Table::new(idle::COLUMNS), Table::new(idle::REST_COLUMNS));
    let mut streams = Table::new(streams::COLUMNS);
    batcher::measure(options, &mut batchers);
    queue::measure(options, &mut queues);
    full::measure(options, &mut full)?;
    added::measure(options, &mut added)?;
    idle::measure(options, &mut idle, &mut rest)?;
    streams::measure(options, &mut streams)?;
    Ok(vec![batchers, queues, full, added, idle, rest, streams])
}
