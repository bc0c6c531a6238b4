//! Idle connections: memory of each, and their effect on sixteen busy ones.

use super::{SMALL, allow, selected};
use crate::Result;
use crate::exchange::{Exchange, Wire};
use crate::load::{self, Target};
use crate::options::Options;
use crate::pairs;
use crate::process::{Process, cpu_time};
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::Table;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub const COLUMNS: &[&str] = &[
    "silent connections",
    "RSS MB",
    "without",
    "KB each",
    "threads",
    "without",
    "CPU ms in 5 s",
    "switches",
    "req/s",
    "without",
    "ratio",
    "p99 µs",
    "without",
    "spread",
];
const SILENT: [usize; 3] = [100, 1000, 10_000];
const AT_ONCE: usize = 16;
const SETTLED: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);
/// The client's part of opening HTTP/2: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn name((frontend, silent): (Frontend, usize)) -> String {
    format!("scaling idle {} {silent}", frontend.name())
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    for row in selected(options, &SILENT, name) {
        let cells = allow(row.1).and_then(|()| one(options, row));
        table.measured(name(row), cells);
    }
    Ok(())
}

fn one(options: &Options, (frontend, number): (Frontend, usize)) -> Result<Vec<String>> {
    let models = repository::serving(options)?;
    let with = Process::server(options, models.path())?;
    let without = Process::server(options, models.path())?;
    let exchanges = exchanges(frontend, Work::Identity(SMALL));
    let pass = |server, length| load::pass(server, frontend.wire(), &exchanges, AT_ONCE, length);
    // Allocations of the first requests are not those of a connection.
    pass(&with, options.pass)?;
    let (before, threads_before) = (with.memory("VmRSS")?, threads(&with)?);
    let silent = (0..number)
        .map(|_| open_connection(&with.target(), frontend, &exchanges))
        .collect::<Result<Vec<TcpStream>>>()?;
    std::thread::sleep(SETTLED);
    let threads = threads(&with)?;
    let (cpu, switches) = (cpu_time(with.id())?, with.switches()?);
    std::thread::sleep(REST);
    // HTTP connections give their buffers back after a second, and the allocator gives free pages
    // back three seconds later.
    let memory = with.memory("VmRSS")?;
    let cpu = cpu_time(with.id())?.saturating_sub(cpu);
    let switches = with.switches()?.saturating_sub(switches);
    let pairs = pairs::run(options, |length| pass(&with, length), |length| pass(&without, length))?;
    drop(silent);
    let (rate, rate_without) = pairs.both(|pass| pass.per_second);
    let (p99, p99_without) = pairs.both(|pass| pass.p99_us);
    Ok(vec![
        format!("{memory:.1}"),
        format!("{before:.1}"),
        format!("{:.1}", (memory - before) * 1e3 / number as f64),
        threads.to_string(),
        threads_before.to_string(),
        format!("{:.2}", cpu.as_secs_f64() * 1e3),
        switches.to_string(),
        format!("{rate:.0}"),
        format!("{rate_without:.0}"),
        format!("{:.2}", pairs.ratio(|pass| pass.per_second)),
        format!("{p99:.0}"),
        format!("{p99_without:.0}"),
        pairs.spread(|pass| pass.cpu_us),
    ])
}

fn threads(server: &Process) -> Result<usize> {
    let folder = format!("/proc/{}/task", server.id());
    fs::read_dir(&folder).map(Iterator::count).map_err(|e| format!("{folder}: {e}"))
}

/// A connection in the state after use: HTTP after a request, gRPC after the settings exchange.
pub fn open_connection(
    target: &Target,
    frontend: Frontend,
    exchanges: &[Exchange],
) -> Result<TcpStream> {
    let (address, bytes): (SocketAddr, &[u8]) = match frontend.wire() {
        Wire::Http1 => (target.http()?, exchanges.first().map_or(&[], |first| &first.message)),
        _ => (target.grpc()?, PREFACE),
    };
    let wrap = |e: std::io::Error| format!("{address}: {e}");
    let mut stream = TcpStream::connect(address).map_err(wrap)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(wrap)?;
    stream.write_all(bytes).map_err(wrap)?;
    match stream.read(&mut [0; 4096]).map_err(wrap)? {
        0 => Err(format!("{address}: the server closed the connection")),
        _ => Ok(stream),
    }
}
