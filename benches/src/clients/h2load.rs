//! h2load: unary gRPC load.

use super::{Connections, Outcome, output, write};
use crate::Result;
use crate::exchange::Exchange;
use crate::histogram::Histogram;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Number of requests for about one pass at `per_second` responses.
pub fn run(
    scratch: &Path,
    address: SocketAddr,
    exchange: &Exchange,
    connections: &Connections,
    per_second: f64,
    response_bytes: usize,
) -> Result<Outcome> {
    let (body, log) = (scratch.join("h2load.body"), scratch.join("h2load.log"));
    write(&body, &exchange.message)?;
    // h2load appends to an existing log.
    let _ = fs::remove_file(&log);
    // With a duration it would cancel requests in flight, so it gets a number of requests.
    let requests = (per_second * connections.length.as_secs_f64()).ceil() as usize;
    let requests = requests.max(connections.concurrency);
    let mut command = Command::new("h2load");
    command
        .arg(format!("-t{}", connections.threads))
        .arg(format!("-c{}", connections.concurrency))
        .arg("-m1")
        .arg(format!("-n{requests}"))
        .arg(format!("--log-file={}", log.display()))
        .arg("-d")
        .arg(&body)
        .args(["-H", "content-type: application/grpc", "-H", "te: trailers"])
        .arg(format!("http://{address}{}", exchange.path));
    let printed = output(&mut command)?;
    let log = fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    read(&printed, &log, connections, response_bytes)
}

/// Totals are parsed from its printed report; the log has each request's time.
fn read(
    printed: &str,
    log: &str,
    connections: &Connections,
    response_bytes: usize,
) -> Result<Outcome> {
    let counts = || {
        let line = |start: &str| printed.lines().find_map(|line| line.strip_prefix(start));
        let per_second =
            line("finished in ")?.split(", ").nth(1)?.split(' ').next()?.parse().ok()?;
        let requests = line("requests: ")?;
        let done: u64 = before(requests, " done")?.parse().ok()?;
        let right: u64 = before(line("status codes: ")?, " 2xx")?.parse().ok()?;
        let data = line("traffic: ")?.rsplit_once(") data")?.0.rsplit_once('(')?.1;
        Some((per_second, done, right, data.parse::<u64>().ok()?, requests))
    };
    let (per_second, done, right, bytes, all) =
        counts().ok_or_else(|| format!("h2load did not print what it counted: {printed}"))?;
    let none = |what| before(all, what) == Some("0");
    if right < done || !(none(" failed") && none(" errored") && none(" timeout")) {
        return Err(format!("requests of h2load failed: {all}; {right} had status 200"));
    }
    connections.received("h2load", done, bytes, response_bytes)?;
    let mut latencies = Histogram::new();
    for time in log.lines().filter_map(|line| line.split('\t').nth(2)?.parse().ok()) {
        latencies.record(Duration::from_micros(time));
    }
    let (p50_us, p99_us) = (latencies.quantile(0.5), latencies.quantile(0.99));
    Ok(Outcome { requests: done, per_second, p50_us, p99_us })
}

/// The word before `what`.
fn before<'t>(text: &'t str, what: &str) -> Option<&'t str> {
    text[..text.find(what)?].rsplit(' ').next()
}

#[cfg(test)]
#[path = "h2load_tests.rs"]
mod tests;
