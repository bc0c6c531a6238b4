//! The load: as many requests at once as the row says, the next one sent when an answer is there.

mod grpc;
mod http;
mod stream;

use crate::Result;
use crate::exchange::{Exchange, Wire};
use crate::histogram::Histogram;
use crate::process::{Process, cpu_time};
use std::time::{Duration, Instant};

/// Not measured: connections open, allocators and caches fill.
const WARM_UP: Duration = Duration::from_millis(100);
/// A server that is silent for so long has lost a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one pass found.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU time of the server for one request.
    pub cpu_us: f64,
}

/// Streams of one gRPC connection, as clients with many requests at once have it.
const STREAMS_PER_CONNECTION: usize = 16;

/// Asks `process` for this long, each of the exchanges in turn.
pub fn pass(
    process: &Process,
    wire: Wire,
    exchanges: &[Exchange],
    concurrency: usize,
    length: Duration,
) -> Result<Pass> {
    run(process, wire, exchanges, [concurrency, STREAMS_PER_CONNECTION], length)
}

/// The same with a connection for each of the requests at once.
pub fn pass_apart(
    process: &Process,
    wire: Wire,
    exchanges: &[Exchange],
    connections: usize,
    length: Duration,
) -> Result<Pass> {
    run(process, wire, exchanges, [connections, 1], length)
}

fn run(
    process: &Process,
    wire: Wire,
    exchanges: &[Exchange],
    [concurrency, per_connection]: [usize; 2],
    length: Duration,
) -> Result<Pass> {
    let meter = Meter::new(process.id(), length);
    match wire {
        Wire::Http1 => {
            http::run(process.http.ok_or("no HTTP port")?, exchanges, concurrency, meter)
        }
        Wire::Grpc => {
            let address = process.grpc.ok_or("no gRPC port")?;
            grpc::run(address, exchanges, concurrency, per_connection, meter)
        }
    }
}

/// The same over streams, with as many sequences at once as are given.
pub fn sequences(process: &Process, sequences: &[Vec<Exchange>], length: Duration) -> Result<Pass> {
    let meter = Meter::new(process.id(), length);
    stream::run(process.grpc.ok_or("no gRPC port")?, sequences, meter)
}

/// Counts answers, and reads the server's CPU time where the measured part begins and ends.
struct Meter {
    pid: u32,
    length: Duration,
    begin: Instant,
    window: Option<(Instant, Duration)>,
    latencies: Histogram,
    pass: Option<Pass>,
}

impl Meter {
    fn new(pid: u32, length: Duration) -> Self {
        let latencies = Histogram::new();
        Meter { pid, length, begin: Instant::now(), window: None, latencies, pass: None }
    }

    /// Takes note of a right answer; false = the pass is over.
    fn answered(&mut self, asked: Instant) -> Result<bool> {
        let now = Instant::now();
        let Some((opened, cpu)) = self.window else {
            if now - self.begin >= WARM_UP {
                self.window = Some((now, cpu_time(self.pid)?));
            }
            return Ok(true);
        };
        if self.pass.is_some() {
            return Ok(false);
        }
        self.latencies.record(now - asked);
        let elapsed = now - opened;
        if elapsed < self.length {
            return Ok(true);
        }
        let spent = cpu_time(self.pid)?.saturating_sub(cpu);
        let answers = self.latencies.count() as f64;
        self.pass = Some(Pass {
            per_second: answers / elapsed.as_secs_f64(),
            p50_us: self.latencies.quantile(0.5),
            p99_us: self.latencies.quantile(0.99),
            cpu_us: spent.as_secs_f64() * 1e6 / answers,
        });
        Ok(false)
    }

    fn result(&self) -> Result<Pass> {
        self.pass.ok_or_else(|| "the pass ended early".to_owned())
    }
}
