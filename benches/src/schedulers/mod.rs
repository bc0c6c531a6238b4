//! The schedulers: alone in this process, in the server, and with many models loaded.

mod added; // what dynamic batching costs a request
mod batches; // the server's statistics
pub mod cpu;
mod former; // batch forming, pure
mod full; // how many batches are full
mod idle; // models that nobody asks
mod models;
pub mod samples; // requests without clients
mod shell; // the queue around a former
mod steps;
mod streams; // sequences

use crate::Result;
use crate::options::Options;
use crate::table::Table;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    let mut formers = Table::new(former::COLUMNS);
    let mut queues = Table::new(shell::COLUMNS);
    let mut full = Table::new(full::COLUMNS);
    let mut added = Table::new(added::COLUMNS);
    let (mut idle, mut rest) = (Table::new(idle::COLUMNS), Table::new(idle::REST_COLUMNS));
    let mut streams = Table::new(streams::COLUMNS);
    former::measure(options, &mut formers);
    shell::measure(options, &mut queues);
    full::measure(options, &mut full)?;
    added::measure(options, &mut added)?;
    idle::measure(options, &mut idle, &mut rest)?;
    streams::measure(options, &mut streams)?;
    Ok(vec![formers, queues, full, added, idle, rest, streams])
}
