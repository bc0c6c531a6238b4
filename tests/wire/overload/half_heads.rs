//! Heads of requests that are left half-sent on the ports of health and metrics: probes are
//! answered all the same.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_tests::{Connection, Server, SetOnDrop};

/// Half-sent heads a second on each port.
const RATE: u32 = 1000;
/// Connections that an attacker holds open: more than the port accepts.
const HELD: usize = 200;
const PROBES: usize = 300;
/// Beyond the target of 20 ms, since the attackers and other tests share the processors. A probe
/// that waits for a place among heads takes a second and more.
const LIMIT: Duration = Duration::from_millis(200);

const LIVE: &str = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";
const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

/// Sends half-sent heads at the rate until `stop`.
fn flood(address: &str, stop: &AtomicBool, sent: &AtomicUsize) {
    let mut held = VecDeque::new();
    let begin = Instant::now();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let opened = TcpStream::connect(address)
            .and_then(|mut stream| stream.write_all(b"GET /v2/hea").map(|()| stream));
        held.extend(opened);
        if held.len() > HELD {
            held.pop_front();
        }
        count += 1;
        sent.fetch_add(1, Ordering::Relaxed);
        let due = Duration::from_secs(1) / RATE * count;
        thread::sleep(due.saturating_sub(begin.elapsed()));
    }
}

/// Times of sorted probes, each on a connection of its own.
fn probe_times(address: &str, request: &str) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..PROBES)
        .map(|_| {
            thread::sleep(Duration::from_millis(10));
            let begin = Instant::now();
            assert_eq!(Connection::open(address).send(request).response().status, 200);
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn half_sent_heads_do_not_delay_health_and_metrics() {
    let server = Server::new().flag("--http-health-port=0").start();
    for (address, request) in
        [(server.listening("health"), LIVE), (server.metrics_address().to_owned(), METRICS)]
    {
        let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut steady = Connection::open(&address);
        let times = thread::scope(|scope| {
            let _stop = SetOnDrop(&stop);
            scope.spawn(|| flood(&address, &stop, &sent));
            let times = probe_times(&address, request);
            // An idle connection is not given up for heads.
            assert_eq!(steady.send(request).response().status, 200);
            times
        });
        let p99 = times[PROBES * 99 / 100];
        println!(
            "{}: {} half-sent heads, p50 {:?}, p99 {p99:?}, longest {:?}",
            request.lines().next().unwrap_or_default(),
            sent.into_inner(),
            times[PROBES / 2],
            times[PROBES - 1]
        );
        assert!(p99 < LIMIT, "p99 of {request:?}: {p99:?}");
    }
}
