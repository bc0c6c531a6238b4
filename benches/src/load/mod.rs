//! The load: as many requests at once as the row says, the next one sent when an answer is there.

mod grpc;
mod http;
mod stream;

use crate::Result;
use crate::exchange::{Exchange, Wire};
use crate::histogram::Histogram;
use crate::process::{Process, cpu_time};
use std::net::SocketAddr;
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
    /// CPU time of the server for one request; not a number where its process is not known.
    pub cpu_us: f64,
    /// Of the last answer, as it is on the wire: HTTP with its head, of gRPC the message and the five bytes before it.
    pub answer_bytes: usize,
}

/// Whom to ask.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub http: Option<SocketAddr>,
    pub grpc: Option<SocketAddr>,
    /// Where it runs on this machine, its process.
    pub pid: Option<u32>,
}

impl Target {
    pub fn http(&self) -> Result<SocketAddr> {
        self.http.ok_or_else(|| "no HTTP port".to_owned())
    }

    pub fn grpc(&self) -> Result<SocketAddr> {
        self.grpc.ok_or_else(|| "no gRPC port".to_owned())
    }

    /// CPU time so far.
    pub fn cpu(&self) -> Result<Option<Duration>> {
        self.pid.map(cpu_time).transpose()
    }
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
    at(&process.target(), wire, exchanges, concurrency, length)
}

/// The same with a connection for each of the requests at once.
pub fn pass_apart(
    process: &Process,
    wire: Wire,
    exchanges: &[Exchange],
    connections: usize,
    length: Duration,
) -> Result<Pass> {
    let meter = Meter::new(process.target(), WARM_UP, length);
    run(&process.target(), wire, exchanges, [connections, 1], meter)
}

pub fn at(
    target: &Target,
    wire: Wire,
    exchanges: &[Exchange],
    concurrency: usize,
    length: Duration,
) -> Result<Pass> {
    let meter = Meter::new(*target, WARM_UP, length);
    run(target, wire, exchanges, [concurrency, STREAMS_PER_CONNECTION], meter)
}

/// Asks once or twice, so that the answer is looked at; nothing is measured.
pub fn check(target: &Target, wire: Wire, exchange: &Exchange) -> Result<usize> {
    let meter = Meter::new(*target, Duration::ZERO, Duration::ZERO);
    Ok(run(target, wire, std::slice::from_ref(exchange), [1, 1], meter)?.answer_bytes)
}

fn run(
    target: &Target,
    wire: Wire,
    exchanges: &[Exchange],
    [concurrency, per_connection]: [usize; 2],
    meter: Meter,
) -> Result<Pass> {
    match wire {
        Wire::Http1 => http::run(target.http()?, exchanges, concurrency, meter),
        Wire::Grpc => grpc::run(target.grpc()?, exchanges, concurrency, per_connection, meter),
        Wire::Stream => {
            // Each request is a sequence of one.
            let each = exchanges.iter().cycle().take(concurrency);
            let sequences: Vec<_> = each.map(|exchange| vec![exchange.clone()]).collect();
            stream::run(target.grpc()?, &sequences, meter)
        }
    }
}

/// The same over streams, with as many sequences at once as are given.
pub fn sequences(process: &Process, sequences: &[Vec<Exchange>], length: Duration) -> Result<Pass> {
    let target = process.target();
    stream::run(target.grpc()?, sequences, Meter::new(target, WARM_UP, length))
}

/// Counts answers, and reads the server's CPU time where the measured part begins and ends.
struct Meter {
    target: Target,
    warm_up: Duration,
    length: Duration,
    begin: Instant,
    window: Option<(Instant, Option<Duration>)>,
    latencies: Histogram,
    pass: Option<Pass>,
}

impl Meter {
    fn new(target: Target, warm_up: Duration, length: Duration) -> Self {
        let (begin, latencies) = (Instant::now(), Histogram::new());
        Meter { target, warm_up, length, begin, window: None, latencies, pass: None }
    }

    /// Takes note of a right answer of so many bytes; false = the pass is over.
    fn answered(&mut self, asked: Instant, answer_bytes: usize) -> Result<bool> {
        let now = Instant::now();
        let Some((opened, cpu)) = self.window else {
            if now - self.begin >= self.warm_up {
                self.window = Some((now, self.target.cpu()?));
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
        let spent = self.target.cpu()?.zip(cpu).map(|(now, then)| now.saturating_sub(then));
        let answers = self.latencies.count() as f64;
        self.pass = Some(Pass {
            per_second: answers / elapsed.as_secs_f64(),
            p50_us: self.latencies.quantile(0.5),
            p99_us: self.latencies.quantile(0.99),
            cpu_us: spent.map_or(f64::NAN, |spent| spent.as_secs_f64() * 1e6 / answers),
            answer_bytes,
        });
        Ok(false)
    }

    fn result(&self) -> Result<Pass> {
        self.pass.ok_or_else(|| "the pass ended early".to_owned())
    }
}
