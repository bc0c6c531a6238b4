//! Cost of traces: small requests to a server that traces all or some of them, beside one that traces
//! nothing.

use crate::Result;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::Table;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

pub const COLUMNS: &[&str] = &pairs::columns("tracing");
const BYTES: usize = 64;
const AT_ONCE: usize = 16;

/// Where traces go.
#[derive(Clone, Copy)]
enum Traced {
    /// As spans to a collector: one of so many requests.
    Spans(u32),
    File(u32),
    /// All are recorded, and none is kept.
    Slow,
}

struct Row {
    title: &'static str,
    frontend: Frontend,
    traced: Traced,
    /// Largest CPU time, relative to that without traces.
    cpu: f64,
}

impl Row {
    fn name(&self) -> String {
        format!("tracing {} {} c{AT_ONCE}", self.title, self.frontend.name())
    }
}

fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for frontend in [Frontend::V2Http, Frontend::V2Grpc] {
        for (title, traced, cpu) in [
            ("spans rate=1", Traced::Spans(1), 1.05),
            ("spans rate=100", Traced::Spans(100), 1.02),
            ("file rate=1", Traced::File(1), 1.25),
            ("file rate=100", Traced::File(100), 1.02),
            ("slow", Traced::Slow, 1.05),
        ] {
            rows.push(Row { title, frontend, traced, cpu });
        }
    }
    rows.retain(|row| options.wants(&row.name()));
    rows
}

pub fn measure(options: &Options) -> Result<Table> {
    let mut table = Table::new(COLUMNS);
    let rows = rows(options);
    if rows.is_empty() {
        return Ok(table);
    }
    let models = repository::serving(options)?;
    let files = repository::empty()?;
    let collector = start_collector()?;
    let without = Process::server(options, models.path())?;
    for row in rows {
        let flags = flags(row.traced, &collector, files.path());
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let with = Process::server_with(options, models.path(), &flags)?;
        table.measured(row.name(), one(options, &row, &with, &without));
    }
    Ok(table)
}

fn flags(traced: Traced, collector: &str, files: &Path) -> Vec<String> {
    let (mode, rate) = match traced {
        Traced::Spans(rate) => ("mode=opentelemetry", rate),
        Traced::File(rate) => ("mode=triton", rate),
        Traced::Slow => return vec!["--trace-slow-ms=60000".to_owned()],
    };
    let target = match traced {
        Traced::Spans(_) => format!("opentelemetry,url={collector}"),
        _ => format!("triton,file={}", files.join(format!("rate-{rate}")).display()),
    };
    let rate = format!("rate={rate}");
    let settings = [mode, "level=TIMESTAMPS", &rate, &target];
    settings.iter().map(|setting| format!("--trace-config={setting}")).collect()
}

fn one(options: &Options, row: &Row, with: &Process, without: &Process) -> Result<Vec<String>> {
    let requests = exchanges(row.frontend, Work::Identity(BYTES));
    let wire = row.frontend.wire();
    let pass = |server, length| load::pass(server, wire, &requests, AT_ONCE, length);
    let pairs = pairs::run(options, |length| pass(with, length), |length| pass(without, length))?;
    Ok(pairs.cpu_cells(row.cpu))
}

/// A collector that takes every batch. Returns its address; it ends with this process.
fn start_collector() -> Result<String> {
    let fault = |e: std::io::Error| format!("cannot start a collector: {e}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || take_batches(stream));
        }
    });
    Ok(format!("http://{address}/v1/traces"))
}

/// Answers the requests of one connection until it ends.
fn take_batches(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        }
    }
}
