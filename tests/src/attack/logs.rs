//! An attacker whose isolated model floods the log of the server and forges lines in it.

use super::attackers::{Attack, WAIT};
use crate::server::{Running, inference};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

/// The isolated model.
pub const CHATTY: &str = "chatty";
/// Lines that one request writes.
const LINES: u64 = 20_000;
/// A child may write so many lines a second, and so many at once after a silence.
const LINES_PER_SECOND: u64 = 100;
const BURST_LINES: u64 = 1000;
const MARK: &str = "flood of the log";

pub fn attacks<'a>(server: &'a Running) -> Vec<Attack<'a>> {
    vec![Attack::new("log-flood", 1, || log_flood(server))]
}

/// One request that writes many long lines, each with a forged one behind a line feed.
fn log_flood(server: &Running) -> Result<(), String> {
    let flood = |log: &str| log.lines().filter(|line| line.contains(MARK)).count() as u64;
    let (begin, before) = (Instant::now(), flood(&server.log()));
    if before > LINES / 2 {
        // Found once; the log is in memory here.
        thread::sleep(WAIT);
        return Ok(());
    }
    let text = format!("{MARK} {}\\nE0101 00:00:00.000000 1 forged.rs:1] forged", "x".repeat(900));
    let request = inference(CHATTY, &format!(r#""log_lines":{LINES},"log_text":"{text}""#));
    let sent = TcpStream::connect(server.http()).and_then(|mut stream| {
        stream.set_read_timeout(Some(WAIT * 10))?;
        stream.write_all(&request)?;
        stream.read(&mut [0; 64])
    });
    if sent.is_err() {
        return Ok(());
    }
    thread::sleep(WAIT);
    let log = server.log();
    let (written, seconds) = (flood(&log) - before, begin.elapsed().as_secs() + 1);
    let limit = LINES_PER_SECOND * seconds + BURST_LINES;
    if written > limit {
        return Err(format!("an isolated model wrote {written} lines in {seconds} s"));
    }
    match log.lines().any(|line| line.starts_with("E0101 00:00:00")) {
        true => Err("an isolated model has forged a line of the log".to_owned()),
        false => Ok(()),
    }
}
