//! Backends built for Triton, in this server and in Triton's own, measured in turn; and what the
//! adapter adds to a call.
//!
//! Measured only with `--only`: it needs the server that `cargo xtask runtimes --triton` fetches.

mod adapter; // a call through the adapter beside the test plugin
mod beside; // both servers with the same models
mod cache; // the response caches of both
mod install; // Triton's files, and the identity backend compiled for it
mod server;

use crate::Result;
use crate::options::Options;
use crate::table::Table;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    if options.only.is_none() {
        return Ok(Vec::new());
    }
    let mut calls = Table::new(adapter::COLUMNS);
    let mut servers = Table::new(beside::COLUMNS);
    let mut caches = Table::new(cache::COLUMNS);
    adapter::measure(options, &mut calls)?;
    beside::measure(options, &mut servers)?;
    cache::measure(options, &mut caches)?;
    Ok(vec![calls, servers, caches])
}
