//! Cost of the response cache: hits, and requests that are never found, beside the same model on a
//! server without a cache.
//!
//! Responses expire after a millisecond where none is to be found, so that each request is looked up
//! and inserted, until the cache switches itself off, as it does for users.

use crate::Result;
use crate::exchange::Exchange;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges, unequal_exchanges};
use crate::table::Table;

pub const COLUMNS: &[&str] = &pairs::columns("response cache");

/// Unequal small requests: as many as there are contents.
const UNEQUAL: usize = 1021;
const MIB: usize = 1 << 20;

pub struct Row {
    title: &'static str,
    pub frontend: Frontend,
    pub bytes: usize,
    pub at_once: usize,
    /// Different requests in turn; `None`: the few of other rows, which are found.
    pub unequal: Option<usize>,
    /// Largest CPU time, relative to that without a cache.
    cpu: f64,
}

impl Row {
    pub fn name(&self) -> String {
        format!("cache {} {} c{}", self.title, self.frontend.name(), self.at_once)
    }

    pub fn requests(&self) -> Vec<Exchange> {
        let work = Work::Identity(self.bytes);
        match self.unequal {
            None => exchanges(self.frontend, work),
            Some(count) => unequal_exchanges(self.frontend, work, count),
        }
    }

    /// Flags of the server: found responses stay, others are gone before they are asked for again.
    pub fn flags(&self) -> Vec<&'static str> {
        let size = "--cache-config=local,size=256M";
        match self.unequal {
            None => vec![size],
            Some(_) => vec![size, "--cache-config=local,ttl=0.001"],
        }
    }
}

pub fn rows(wanted: impl Fn(&Row) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for frontend in [Frontend::V2Http, Frontend::V2Grpc] {
        let mut row = |title, bytes, at_once, unequal, cpu| {
            rows.push(Row { title, frontend, bytes, at_once, unequal, cpu });
        };
        row("hit 64", 64, 16, None, 0.8);
        row("unique 64", 64, 16, Some(UNEQUAL), 1.03);
        row("unique 1M", MIB, 1, Some(8), 1.1);
    }
    rows.retain(wanted);
    rows
}

pub fn measure(options: &Options) -> Result<Table> {
    let mut table = Table::new(COLUMNS);
    let rows = rows(|row| options.wants(&row.name()));
    if rows.is_empty() {
        return Ok(table);
    }
    let models = repository::cached()?;
    let without = Process::server(options, models.path())?;
    for row in rows {
        // A server of its own: a cache that has switched itself off stays off for a while.
        let with = Process::server_with(options, models.path(), &row.flags())?;
        table.measured(row.name(), one(options, &row, &with, &without));
    }
    Ok(table)
}

fn one(options: &Options, row: &Row, with: &Process, without: &Process) -> Result<Vec<String>> {
    let requests = row.requests();
    let wire = row.frontend.wire();
    let pass = |server, length| load::pass(server, wire, &requests, row.at_once, length);
    let pairs = pairs::run(options, |length| pass(with, length), |length| pass(without, length))?;
    Ok(pairs.cpu_cells(row.cpu))
}
