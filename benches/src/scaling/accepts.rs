//! New connections: how many are accepted in a second, and the CPU time of each, compared with the
//! floor.

use super::floor::compare;
use super::idle::open_connection;
use crate::Result;
use crate::exchange::Exchange;
use crate::histogram::Histogram;
use crate::load::{Pass, Target};
use crate::options::Options;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges, floor_exchanges};
use crate::table::Table;
use std::thread;
use std::time::{Duration, Instant};

pub const COLUMNS: &[&str] = &[
    "new connections",
    "accepted/s",
    "p50 µs",
    "p99 µs",
    "CPU µs each",
    "floor accepted/s",
    "floor p50",
    "floor p99",
    "floor CPU",
    "ratio",
    "spread",
];
/// Clients, each of which opens one connection at a time.
const CLIENTS: usize = 8;
/// Opened before a pass is measured.
const WARM_UP: usize = 100;

fn name(frontend: Frontend) -> String {
    format!("scaling accept {} c{CLIENTS}", frontend.name())
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    for frontend in super::FRONTENDS {
        if options.wants(&name(frontend)) {
            table.measured(name(frontend), row(options, frontend));
        }
    }
    Ok(())
}

fn row(options: &Options, frontend: Frontend) -> Result<Vec<String>> {
    let models = repository::serving(options)?;
    let server = Process::server(options, models.path())?;
    let floor = Process::floor(frontend.floor())?;
    let work = Work::Identity(super::SMALL);
    let (to_server, to_floor) = (exchanges(frontend, work), floor_exchanges(frontend, work));
    let passes = compare(
        options,
        || pass(options.pass, &server.target(), frontend, &to_server),
        || pass(options.pass, &floor.target(), frontend, &to_floor),
    )?;
    Ok([vec![passes.rate()], passes.cells()].concat())
}

/// Opens connections for this long, each until the first response on it has arrived.
fn pass(
    length: Duration,
    target: &Target,
    frontend: Frontend,
    exchanges: &[Exchange],
) -> Result<Pass> {
    for _ in 0..WARM_UP {
        open_connection(target, frontend, exchanges)?;
    }
    let (begin, cpu) = (Instant::now(), target.cpu()?);
    let client = || {
        let mut latencies = Vec::new();
        while begin.elapsed() < length {
            let opened = Instant::now();
            let _connection = open_connection(target, frontend, exchanges)?;
            latencies.push(opened.elapsed());
        }
        Ok::<_, String>(latencies)
    };
    let mut latencies = Histogram::new();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        for client in clients {
            let opened = client.join().map_err(|_| "a client panicked")??;
            opened.into_iter().for_each(|latency| latencies.record(latency));
        }
        Ok::<_, String>(())
    })?;
    let elapsed = begin.elapsed().as_secs_f64();
    let used = target.cpu()?.zip(cpu).map(|(now, then)| now.saturating_sub(then));
    let count = latencies.count() as f64;
    Ok(Pass {
        per_second: count / elapsed,
        p50_us: latencies.quantile(0.5),
        p99_us: latencies.quantile(0.99),
        p999_us: latencies.quantile(0.999),
        max_us: latencies.quantile(1.0),
        cpu_us: used.map_or(f64::NAN, |used| used.as_secs_f64() * 1e6 / count),
        client_cpu_us: f64::NAN,
        client_user_us: f64::NAN,
        response_bytes: 0,
    })
}
