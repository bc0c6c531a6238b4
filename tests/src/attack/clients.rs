//! Sixteen well-behaved clients, four on each protocol, that check every response.

use super::Stop;
use crate::http2::{Client, End, call_headers};
use crate::{Connection, Endpoint, Running};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

const PER_PROTOCOL: usize = 4;
/// Pause between two requests of a client: the machine is busy, not saturated.
const PAUSE: Duration = Duration::from_millis(2);

/// Latencies and errors of a set of requests.
#[derive(Debug, Default)]
pub struct Latency {
    /// Sorted.
    samples: Vec<Duration>,
    pub errors: u64,
    /// Some errors and how often they occurred.
    pub examples: BTreeMap<String, u64>,
}

impl Latency {
    pub fn add(&mut self, begin: Instant, result: Result<(), String>) {
        match result {
            Ok(()) => self.samples.push(begin.elapsed()),
            Err(text) => {
                self.errors += 1;
                *self.examples.entry(text).or_default() += 1;
            }
        }
    }

    pub fn merge(mut self, other: Latency) -> Latency {
        self.samples.extend(other.samples);
        self.errors += other.errors;
        for (text, count) in other.examples {
            *self.examples.entry(text).or_default() += count;
        }
        self
    }

    pub fn sorted(mut self) -> Latency {
        self.samples.sort_unstable();
        self
    }

    /// Zero without samples.
    pub fn percentile(&self, percent: f64) -> Duration {
        let at = (self.samples.len() as f64 * percent / 100.0) as usize;
        self.samples.get(at).or(self.samples.last()).copied().unwrap_or_default()
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, max] = [50.0, 99.0, 100.0].map(|percent| self.percentile(percent));
        let count = self.samples.len();
        write!(
            f,
            "{count} responses, p50 {p50:?}, p99 {p99:?}, max {max:?}, {} errors",
            self.errors
        )
    }
}

/// Runs the clients for this time, then calls `end`, which must end all other traffic.
pub fn measure<T>(server: &Running, time: Duration, end: impl FnOnce() -> T) -> (Latency, T) {
    let stop = Stop::default();
    thread::scope(|scope| {
        let stop = &stop;
        let endpoints = [Endpoint::HttpV1, Endpoint::HttpV2, Endpoint::GrpcV1, Endpoint::GrpcV2];
        let clients: Vec<_> = endpoints
            .into_iter()
            .flat_map(|endpoint| [endpoint; PER_PROTOCOL])
            .map(|endpoint| scope.spawn(move || client(server, endpoint, stop)))
            .collect();
        thread::sleep(time);
        stop.set();
        let latency = clients.into_iter().fold(Latency::default(), |sum, client| {
            sum.merge(client.join().unwrap_or_else(|_| panic!("a client failed")))
        });
        (latency.sorted(), end())
    })
}

fn client(server: &Running, endpoint: Endpoint, stop: &Stop) -> Latency {
    let mut latency = Latency::default();
    let mut wire = None;
    let mut number = 0.0;
    while !stop.is_set() {
        number += 1.0;
        let begin = Instant::now();
        // The kit panics where a test would fail, for instance when a response does not arrive.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let wire = wire.get_or_insert_with(|| Wire::open(server, endpoint));
            wire.infer(endpoint, [number, -1.0])
        }));
        let result = result.unwrap_or_else(|_| Err("the connection failed".to_owned()));
        if result.is_err() {
            wire = None;
        }
        latency.add(begin, result.map_err(|e| format!("{endpoint:?}: {e}")));
        thread::sleep(PAUSE);
    }
    latency
}

enum Wire {
    Http(Connection),
    Grpc(Client),
}

impl Wire {
    fn open(server: &Running, endpoint: Endpoint) -> Wire {
        match endpoint.path() {
            None => Wire::Http(Connection::open(server.http())),
            Some(_) => Wire::Grpc(Client::open(server.grpc())),
        }
    }

    fn infer(&mut self, endpoint: Endpoint, values: [f32; 2]) -> Result<(), String> {
        let bytes = endpoint.bytes("echo", values);
        match self {
            Wire::Http(connection) => {
                let response = connection.send(&bytes).try_response();
                let response = response.ok_or("closed without a response")?;
                if response.status != 200 {
                    return Err(format!("{} {}", response.status, response.error_text()));
                }
                let right = endpoint.is_echo(values, &response);
                right.then_some(()).ok_or_else(|| "a wrong response".to_owned())
            }
            Wire::Grpc(client) => {
                let path = endpoint.path().unwrap_or_default();
                let call = client.call(&call_headers(path));
                client.send(call, &bytes, true);
                let ended = client.end(call);
                let echoed = ended.body.windows(8).any(|part| part == crate::grpc::raw(values));
                let right = ended.end == End::Responded && echoed;
                right.then_some(()).ok_or_else(|| format!("{:?} {:?}", ended.end, ended.status))
            }
        }
    }
}
