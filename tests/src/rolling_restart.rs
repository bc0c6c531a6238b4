//! A rolling restart of three servers under load, seen by clients that know one address: the Service
//! of [`crate::service`] or a real Envoy.

use crate::envoy::Envoy;
use crate::{Connection, Running, Server, SetOnDrop, Signal, inference, probe};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Protocol, Settings};

/// Failures of each kind of client that a report shows.
const EXAMPLES: usize = 5;

/// Requests of one kind of client.
#[derive(Default)]
pub struct RequestCounts {
    good: AtomicU64,
    failed: AtomicU64,
    /// What the first failures said.
    examples: Mutex<Vec<String>>,
}

impl RequestCounts {
    fn add(&self, result: Result<(), String>) {
        let Err(text) = result else {
            self.good.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if examples.len() < EXAMPLES {
            examples.push(text);
        }
    }

    fn examples(&self) -> Vec<String> {
        self.examples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Good and failed ones.
    pub fn read(&self) -> (u64, u64) {
        (self.good.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

/// Keeps its connection until the server closes it, as clients with keep-alive do.
fn send_http(address: &str, ended: &AtomicBool, counts: &RequestCounts) {
    let mut kept: Option<Connection> = None;
    while !ended.load(Ordering::Relaxed) {
        let mut connection = match kept.take().map_or_else(|| Connection::try_open(address), Ok) {
            Ok(connection) => connection,
            Err(e) => {
                counts.add(Err(format!("no connection: {e}")));
                continue;
            }
        };
        let response = connection.send(inference("echo", "")).try_response();
        counts.add(match &response {
            Some(response) if response.status == 200 => Ok(()),
            Some(response) => Err(format!("HTTP {} {}", response.status, response.text())),
            None => Err("the connection ended without a response".to_owned()),
        });
        if response.is_some_and(|response| response.header("connection") != Some("close")) {
            kept = Some(connection);
        }
    }
}

fn send_grpc(address: &str, ended: &AtomicBool, counts: &RequestCounts) {
    let settings = Settings::new(address).protocol(Protocol::Grpc);
    let client = BlockingClient::new(&settings).unwrap_or_else(|e| panic!("{e}"));
    let values = [1.0f32, 2.0].into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    let input = Input::new("INPUT0", "FP32", [1, 2], values);
    let request = InferRequest::new("echo").input(input);
    while !ended.load(Ordering::Relaxed) {
        counts.add(client.infer(&request).map(drop).map_err(|e| e.to_string()));
    }
}

/// A server that waits for so long between SIGTERM and its shutdown.
pub fn echo_server(delay_secs: u32) -> Server {
    Server::new().model("echo", probe("echo", &[])).flag(format!("--drain-delay-secs={delay_secs}"))
}

/// Sends without pause from two clients over HTTP and two over gRPC while `restart` runs, which gets
/// the counters of both.
pub fn send_during(
    (http, grpc): (&str, &str),
    restart: impl FnOnce(&RequestCounts, &RequestCounts),
) -> [RequestCounts; 2] {
    let (ended, over_http, over_grpc) =
        (AtomicBool::new(false), RequestCounts::default(), RequestCounts::default());
    thread::scope(|scope| {
        let _end = SetOnDrop(&ended);
        for _ in 0..2 {
            scope.spawn(|| send_http(http, &ended, &over_http));
            scope.spawn(|| send_grpc(grpc, &ended, &over_grpc));
        }
        restart(&over_http, &over_grpc);
    });
    [over_http, over_grpc]
}

/// Ends the server as an orchestrator does, and waits for it.
pub fn end_server(server: Running) {
    server.signal(Signal::TERM);
    let exit = server.wait();
    assert_eq!(exit.code(), 0, "{}", exit.stderr);
}

/// What clients of three servers behind Envoy saw.
#[derive(Debug)]
pub struct RestartReport {
    pub delay_secs: u32,
    pub restarts: usize,
    /// Good and failed requests.
    pub http: (u64, u64),
    pub grpc: (u64, u64),
    /// What some of the failures said.
    pub examples: Vec<String>,
    pub took: Duration,
}

impl RestartReport {
    pub fn failed(&self) -> u64 {
        self.http.1 + self.grpc.1
    }
}

impl fmt::Display for RestartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delay_secs, restarts, http, grpc, examples, took } = self;
        write!(
            f,
            "--drain-delay-secs={delay_secs}: {restarts} restarts in {:.0} s; HTTP {} good, {} failed; gRPC {} good, {} failed",
            took.as_secs_f64(),
            http.0,
            http.1,
            grpc.0,
            grpc.1
        )?;
        examples.iter().try_for_each(|text| write!(f, "\n  failed: {text}"))
    }
}

/// Restarts three servers behind Envoy in turn, each on its own ports, at least once each and until
/// so many requests were sent.
pub fn restart_behind_envoy(delay_secs: u32, requests: u64) -> RestartReport {
    let mut servers: Vec<Running> = (0..3).map(|_| echo_server(delay_secs).start()).collect();
    let envoy = Envoy::start(&servers.iter().collect::<Vec<_>>());
    servers.iter().for_each(|server| envoy.wait_for(server));
    let (begin, mut restarts) = (Instant::now(), 0);
    let [http, grpc] = send_during((envoy.address(), envoy.address()), |http, grpc| {
        let sent = || {
            let ((a, b), (c, d)) = (http.read(), grpc.read());
            a + b + c + d
        };
        while restarts < servers.len() || sent() < requests {
            let old = servers.remove(0);
            let port = |address: &str| address.rsplit(':').next().unwrap_or_default().to_owned();
            let (http, grpc) = (port(old.http()), port(old.grpc()));
            end_server(old);
            let new = echo_server(delay_secs)
                .flag(format!("--http-port={http}"))
                .flag(format!("--grpc-port={grpc}"))
                .start();
            envoy.wait_for(&new);
            servers.push(new);
            restarts += 1;
        }
    });
    RestartReport {
        delay_secs,
        restarts,
        http: http.read(),
        grpc: grpc.read(),
        examples: [http.examples(), grpc.examples()].concat(),
        took: begin.elapsed(),
    }
}
