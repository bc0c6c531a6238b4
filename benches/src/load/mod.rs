//! Closed-loop load: the row's number of requests in flight, the next one sent when a response
//! arrives.
//!
//! This is the client `own` of the bench (README.md, docs/performance.md), which trtserver-perf,
//! wrk and h2load cannot replace:
//!
//! - It compares every byte of every response; a wrong one fails the row. The others do not look at
//!   contents.
//! - The floors are bare echoes that speak no inference protocol, and `floor_ratio` is only a ratio
//!   of the same client. trtserver-perf asks a server for the model's metadata first; wrk speaks no
//!   gRPC and h2load no streams of several messages.
//! - It sends prepared requests of any kind: v1, sequences, shared memory, many models in turn, one
//!   connection for each request.
//! - trtserver-perf is measured itself (`load-tool`), by rows that check the responses with a
//!   client that shares no code with it.

mod grpc;
mod http;
mod stream;

use crate::Result;
use crate::exchange::{Exchange, Wire};
use crate::histogram::Histogram;
use crate::process::{Process, tree_time};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Warm-up, not measured.
const WARM_UP: Duration = Duration::from_millis(100);
/// A response that takes longer counts as lost.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Figures of one pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// This and the maximum: not a number if the client does not tell.
    pub p999_us: f64,
    pub max_us: f64,
    /// CPU time of the server for one request; not a number where its process is not known.
    pub cpu_us: f64,
    /// CPU time of the load generator for one request, and its part in user mode; not a number
    /// where it is this process.
    pub client_cpu_us: f64,
    pub client_user_us: f64,
    /// Length of the last response on the wire: HTTP with its head, gRPC the length-prefixed
    /// message.
    pub response_bytes: usize,
}

/// A server under load.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub http: Option<SocketAddr>,
    pub grpc: Option<SocketAddr>,
    /// Its process, if it runs on this machine.
    pub pid: Option<u32>,
}

impl Target {
    pub fn http(&self) -> Result<SocketAddr> {
        self.http.ok_or_else(|| "no HTTP port".to_owned())
    }

    pub fn grpc(&self) -> Result<SocketAddr> {
        self.grpc.ok_or_else(|| "no gRPC port".to_owned())
    }

    /// CPU time so far, with that of the processes that it has started.
    pub fn cpu(&self) -> Result<Option<Duration>> {
        self.pid.map(tree_time).transpose()
    }
}

/// Streams per gRPC connection.
const STREAMS_PER_CONNECTION: usize = 16;

/// Sends the exchanges in turn for this long.
pub fn pass(
    process: &Process,
    wire: Wire,
    exchanges: &[Exchange],
    concurrency: usize,
    length: Duration,
) -> Result<Pass> {
    at(&process.target(), wire, exchanges, concurrency, length)
}

/// The same with one connection per request in flight.
pub fn pass_per_connection(
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

/// Sends one or two requests to check the response; nothing is measured.
pub fn check(target: &Target, wire: Wire, exchange: &Exchange) -> Result<usize> {
    let meter = Meter::new(*target, Duration::ZERO, Duration::ZERO);
    Ok(run(target, wire, std::slice::from_ref(exchange), [1, 1], meter)?.response_bytes)
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
            // Each request is a sequence of its own.
            let each = exchanges.iter().cycle().take(concurrency);
            let sequences: Vec<_> = each.map(|exchange| vec![exchange.clone()]).collect();
            stream::run(target.grpc()?, &sequences, meter)
        }
    }
}

/// The same over streams, with this many concurrent sequences.
pub fn sequences(process: &Process, sequences: &[Vec<Exchange>], length: Duration) -> Result<Pass> {
    let target = process.target();
    stream::run(target.grpc()?, sequences, Meter::new(target, WARM_UP, length))
}

/// Counts responses, and reads the server's CPU time at both ends of the measured part.
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

    /// Counts a correct response of this length; false when the pass is over.
    fn record(&mut self, sent_at: Instant, response_bytes: usize) -> Result<bool> {
        let now = Instant::now();
        let Some((opened, cpu)) = self.window else {
            if now - self.begin >= self.warm_up {
                // Reading the CPU time of ten thousand threads takes a fifth of a second.
                let cpu = self.target.cpu()?;
                self.window = Some((Instant::now(), cpu));
            }
            return Ok(true);
        };
        if self.pass.is_some() {
            return Ok(false);
        }
        // Its response waited while the CPU time was read.
        if sent_at < opened {
            return Ok(true);
        }
        self.latencies.record(now - sent_at);
        let elapsed = now - opened;
        if elapsed < self.length {
            return Ok(true);
        }
        let used = self.target.cpu()?.zip(cpu).map(|(now, then)| now.saturating_sub(then));
        let responses = self.latencies.count() as f64;
        self.pass = Some(Pass {
            per_second: responses / elapsed.as_secs_f64(),
            p50_us: self.latencies.quantile(0.5),
            p99_us: self.latencies.quantile(0.99),
            p999_us: self.latencies.quantile(0.999),
            max_us: self.latencies.quantile(1.0),
            cpu_us: used.map_or(f64::NAN, |used| used.as_secs_f64() * 1e6 / responses),
            client_cpu_us: f64::NAN,
            client_user_us: f64::NAN,
            response_bytes,
        });
        Ok(false)
    }

    fn result(&self) -> Result<Pass> {
        self.pass.ok_or_else(|| "the pass ended early".to_owned())
    }
}
