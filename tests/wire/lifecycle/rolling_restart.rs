//! A rolling restart of three servers behind one address, under load: what clients see with and
//! without `--drain-delay-secs`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Protocol, Settings};
use trtserver_tests::service::Service;
use trtserver_tests::{Connection, Running, Server, SetOnDrop, Signal, inference, probe, say};

const SERVERS: usize = 3;
/// From a probe to its effect.
const LAG: Duration = Duration::from_millis(500);
const DELAY_SECS: u32 = 3;

/// Requests of one kind of client.
#[derive(Default)]
struct RequestCounts {
    good: AtomicU64,
    failed: AtomicU64,
}

impl RequestCounts {
    fn add(&self, good: bool) {
        let counter = if good { &self.good } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        (self.good.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

/// Keeps its connection until the server closes it, as clients with keep-alive do.
fn send_http(address: &str, ended: &AtomicBool, counts: &RequestCounts) {
    let mut kept: Option<Connection> = None;
    while !ended.load(Ordering::Relaxed) {
        let Some(mut connection) = kept.take().or_else(|| Connection::try_open(address).ok())
        else {
            counts.add(false);
            continue;
        };
        let response = connection.send(inference("echo", "")).try_response();
        counts.add(response.as_ref().is_some_and(|response| response.status == 200));
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
        counts.add(client.infer(&request).is_ok());
    }
}

fn start_server(delay_secs: u32) -> Running {
    Server::new()
        .model("echo", probe("echo", &[]))
        .flag(format!("--drain-delay-secs={delay_secs}"))
        .start()
}

/// Replaces each server by a new one. Good and failed requests over HTTP and gRPC.
fn restart_all(delay_secs: u32) -> [(u64, u64); 2] {
    let service = Service::start(LAG);
    let add = |server: Running| {
        service.add(server.http(), server.grpc());
        server
    };
    let mut servers: Vec<Running> = (0..SERVERS).map(|_| add(start_server(delay_secs))).collect();
    let (ended, http, grpc) =
        (AtomicBool::new(false), RequestCounts::default(), RequestCounts::default());
    thread::scope(|scope| {
        let _end = SetOnDrop(&ended);
        for _ in 0..2 {
            scope.spawn(|| send_http(service.http(), &ended, &http));
            scope.spawn(|| send_grpc(service.grpc(), &ended, &grpc));
        }
        for _ in 0..SERVERS {
            let next = add(start_server(delay_secs));
            let old = std::mem::replace(&mut servers[0], next);
            servers.rotate_left(1);
            old.signal(Signal::TERM);
            let exit = old.wait();
            assert_eq!(exit.code(), 0, "{}", exit.stderr);
        }
    });
    [http.read(), grpc.read()]
}

#[test]
fn drain_delay_loses_no_request_of_a_rolling_restart() {
    for (delay_secs, loses) in [(DELAY_SECS, false), (0, true)] {
        let [http, grpc] = restart_all(delay_secs);
        say(&format!(
            "--drain-delay-secs={delay_secs}: HTTP {} good, {} failed; gRPC {} good, {} failed",
            http.0, http.1, grpc.0, grpc.1
        ));
        assert!(http.0 > 500 && grpc.0 > 500, "too few requests: {http:?} {grpc:?}");
        if loses {
            assert!(http.1 > 0 && grpc.1 > 0, "the restart is not felt: {http:?} {grpc:?}");
        } else {
            assert_eq!((http.1, grpc.1), (0, 0));
        }
    }
}
