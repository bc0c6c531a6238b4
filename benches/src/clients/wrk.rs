//! wrk: HTTP/1.1 load.

use super::{Connections, Outcome, output, write};
use crate::Result;
use crate::exchange::Exchange;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Prefix of the line that our script prints.
const MARK: &str = "counted:";

pub fn run(
    scratch: &Path,
    address: SocketAddr,
    exchange: &Exchange,
    connections: &Connections,
    response_bytes: usize,
) -> Result<Outcome> {
    let (script, body) = (scratch.join("wrk.lua"), scratch.join("wrk.body"));
    let (text, bytes) = script_of(&exchange.message, &body)?;
    write(&body, bytes)?;
    write(&script, text.as_bytes())?;
    let mut command = Command::new("wrk");
    command
        .arg(format!("-t{}", connections.threads))
        .arg(format!("-c{}", connections.concurrency))
        // wrk takes whole seconds only.
        .arg(format!("-d{}s", connections.length.as_secs_f64().ceil().max(1.0)))
        .arg("--timeout=10s")
        .arg("-s")
        .arg(&script)
        .arg(format!("http://{address}"));
    let printed = output(&mut command)?;
    read(&printed, connections, response_bytes)
}

/// A script that sends the message of an exchange, with the body from a file.
fn script_of<'m>(message: &'m [u8], body: &Path) -> Result<(String, &'m [u8])> {
    let at =
        message.windows(4).position(|four| four == b"\r\n\r\n").ok_or("a request without end")?;
    let head = std::str::from_utf8(&message[..at]).map_err(|_| "a request that is not text")?;
    let mut lines = head.split("\r\n");
    let mut fields = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let mut script = format!(
        "local file = assert(io.open({:?}, \"rb\"))\nwrk.body = file:read(\"*a\")\nfile:close()\n\
         wrk.method = {method:?}\nwrk.path = {path:?}\n",
        body.display().to_string()
    );
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        // wrk writes these two itself.
        if !["host", "content-length"].contains(&name.to_ascii_lowercase().as_str()) {
            script += &format!("wrk.headers[{name:?}] = {:?}\n", value.trim());
        }
    }
    script += &format!(
        "function done(summary, latency, requests)\n  local e = summary.errors\n  \
         print(string.format(\"{MARK} %d %d %d %d %.1f %.1f\", summary.requests, summary.duration, \
         summary.bytes, e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), \
         latency:percentile(99)))\nend\n"
    );
    Ok((script, &message[at + 4..]))
}

fn read(printed: &str, connections: &Connections, response_bytes: usize) -> Result<Outcome> {
    let line = printed.lines().find_map(|line| line.strip_prefix(MARK));
    let numbers: Vec<f64> = line
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    let [requests, duration_us, bytes, failed, p50_us, p99_us] = numbers[..] else {
        return Err(format!("wrk did not print what it counted: {printed}"));
    };
    if failed > 0.0 {
        return Err(format!("{failed} of {requests} requests of wrk failed"));
    }
    let requests = requests as u64;
    connections.received("wrk", requests, bytes as u64, response_bytes)?;
    let per_second = requests as f64 / (duration_us / 1e6);
    Ok(Outcome { requests, per_second, p50_us, p99_us })
}

#[cfg(test)]
#[path = "wrk_tests.rs"]
mod tests;
