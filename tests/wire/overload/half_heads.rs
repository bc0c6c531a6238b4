//! Heads of requests that are left half-sent on the ports of health and metrics: probes are
//! answered all the same.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_tests::{Connection, Server, SetOnDrop};

/// Half-sent heads a second. Each waits for a place among those that are held; the attack of the
/// soak test, on an optimised server, sends more.
const RATE: u32 = 250;
/// Connections that an attacker holds open: far more than the port accepts.
const HELD: usize = 600;
const PROBES: usize = 150;
/// What a probe of the attacked server may take longer than one of a server beside it. Beyond the
/// target of 20 ms, since the attackers and other tests share the processors. A probe that waits
/// for a place among heads takes a second and more.
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

/// The time of a probe on a connection of its own.
fn probe_time(address: &str, request: &str) -> Duration {
    let begin = Instant::now();
    assert_eq!(Connection::open(address).send(request).response().status, 200);
    begin.elapsed()
}

/// Sorted times of probes of each address, in turns: what else the machine does delays all.
fn probe_times(addresses: [&str; 2], request: &str) -> [Vec<Duration>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..PROBES {
        thread::sleep(Duration::from_millis(10));
        for (address, times) in addresses.iter().zip(&mut times) {
            times.push(probe_time(address, request));
        }
    }
    times.iter_mut().for_each(|times| times.sort_unstable());
    times
}

#[test]
fn half_sent_heads_do_not_delay_health_and_metrics() {
    let [server, quiet] = [(); 2].map(|()| Server::new().flag("--http-health-port=0").start());
    for (port, request) in [("health", LIVE), ("metrics", METRICS)] {
        let address = server.listening(port);
        let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut steady = Connection::open(&address);
        let [attacked, beside] = thread::scope(|scope| {
            let _stop = SetOnDrop(&stop);
            scope.spawn(|| flood(&address, &stop, &sent));
            let times = probe_times([&address, &quiet.listening(port)], request);
            // An idle connection is not given up for heads.
            assert_eq!(steady.send(request).response().status, 200);
            times
        });
        let p99 = |times: &[Duration]| times[PROBES * 99 / 100];
        let text = format!(
            "{port}: {} half-sent heads, p50 {:?}, p99 {:?}; beside it p50 {:?}, p99 {:?}",
            sent.into_inner(),
            attacked[PROBES / 2],
            p99(&attacked),
            beside[PROBES / 2],
            p99(&beside)
        );
        println!("{text}");
        assert!(p99(&attacked) < p99(&beside) + LIMIT, "{text}");
    }
}
