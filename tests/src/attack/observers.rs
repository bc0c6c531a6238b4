//! What an operator observes: health endpoints on every port, the metrics page, and the server's
//! memory.

use super::Stop;
use super::clients::Latency;
use crate::http1::{Connection, request};
use crate::http2::{Client, End, call_headers, message};
use crate::server::Running;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

/// Names of endpoints.
pub const HEALTH_PORT: &str = "live, health port";
pub const METRICS: &str = "metrics";

const INTERVAL: Duration = Duration::from_millis(20);

/// Samples of a whole run.
#[derive(Debug)]
pub struct Observed {
    pub endpoints: Vec<(&'static str, Latency)>,
    pub peak_kib: u64,
}

/// Samples until `stop` is set.
pub fn observe(server: &Running, stop: &Stop) -> Observed {
    let health = server.listening("health");
    thread::scope(|scope| {
        let sample = |probe: &dyn Fn() -> Result<(), String>| sample(stop, probe);
        let get = |address: &str, path: &str| {
            let get = request("GET", path, &[("Connection", "close")], b"");
            let status = Connection::open(address).send(get).try_response().map(|r| r.status);
            if status == Some(200) { Ok(()) } else { Err(format!("status {status:?}")) }
        };
        let main = scope.spawn(move || sample(&|| get(server.http(), "/v2/health/live")));
        let own = scope.spawn(move || sample(&|| get(&health, "/v2/health/live")));
        let metrics = scope.spawn(move || sample(&|| get(server.metrics_address(), "/metrics")));
        let grpc = scope.spawn(move || sample(&|| server_live(server)));
        let mut peak_kib = 0;
        while !stop.is_set() {
            peak_kib = peak_kib.max(server.resident_kib());
            thread::sleep(INTERVAL);
        }
        let endpoints = [
            ("live, HTTP port", main),
            (HEALTH_PORT, own),
            (METRICS, metrics),
            ("ServerLive, gRPC port", grpc),
        ];
        let endpoints = endpoints.into_iter().map(|(name, thread)| {
            (name, thread.join().unwrap_or_else(|_| panic!("observer of {name} failed")))
        });
        Observed { endpoints: endpoints.collect(), peak_kib }
    })
}

fn server_live(server: &Running) -> Result<(), String> {
    let mut client = Client::open(server.grpc());
    let call = client.call(&call_headers("/inference.GRPCInferenceService/ServerLive"));
    client.send(call, &message(&[]), true);
    let ended = client.end(call);
    let live = ended.end == End::Responded && ended.body.ends_with(&[8, 1]);
    live.then_some(()).ok_or_else(|| format!("{ended:?}"))
}

fn sample(stop: &Stop, probe: &dyn Fn() -> Result<(), String>) -> Latency {
    let mut latency = Latency::default();
    while !stop.is_set() {
        let begin = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(probe));
        latency.add(begin, result.unwrap_or_else(|_| Err("the connection failed".to_owned())));
        thread::sleep(INTERVAL);
    }
    latency.sorted()
}
