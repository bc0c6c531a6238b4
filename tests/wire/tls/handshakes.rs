//! Handshakes that stall, die or lie take neither memory nor the place of other clients.

use super::{Pki, encrypted, pki};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_tests::tls::{TlsConnection, client_config};
use trtserver_tests::{Running, SetOnDrop, inference};

/// Attacking connections of each kind.
const EACH: usize = 3400;
/// How many of them are open at a time.
const OPEN: usize = 400;
/// A new connection of a well-behaved client is served within this time: as long as the youngest
/// handshakes are waited for, and some.
const LIMIT: Duration = Duration::from_secs(5);

/// The beginning of a ClientHello that announces 512 bytes.
const HALF_HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefgh";
const LIES: [&[u8]; 4] = [
    b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    // A hello of 16 MB.
    b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",
    // An alert in place of a hello.
    b"\x15\x03\x03\x00\x02\x02\x28",
];

fn failures(server: &Running, reason: &str) -> f64 {
    ["http", "grpc"]
        .map(|listener| {
            let labels = format!("listener=\"{listener}\",reason=\"{reason}\"");
            let name = "trtserver_tls_handshake_failures_total";
            server.metrics(&format!("{name}{{{labels}}}")).unwrap_or(0.0)
        })
        .iter()
        .sum()
}

fn connect(address: &str, bytes: &[u8]) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    // The server may have closed it already.
    let _ = stream.write_all(bytes);
    Some(stream)
}

/// Opens connections until `ended`, and keeps the youngest.
fn attack(server: &Running) {
    let mut open = VecDeque::new();
    for number in 0..EACH {
        let address = if number % 2 == 0 { server.http() } else { server.grpc() };
        let stalled = if number % 3 == 0 { &b""[..] } else { HALF_HELLO };
        open.extend(connect(address, stalled));
        // One that dies.
        drop(connect(address, HALF_HELLO));
        if let Some(mut liar) = connect(address, LIES[number % LIES.len()]) {
            let _ = liar.set_read_timeout(Some(Duration::from_millis(1)));
            let _ = liar.read(&mut [0; 64]);
        }
        if open.len() > OPEN {
            open.pop_front();
        }
    }
}

/// The longest time in which a new connection got its first response.
fn observe(server: &Running, pki: &Pki, ended: &AtomicBool) -> (usize, Duration) {
    let config = client_config(&pki.servers, None, &["http/1.1"]);
    let (mut count, mut longest) = (0, Duration::ZERO);
    while !ended.load(Ordering::Relaxed) || count < 10 {
        let begin = Instant::now();
        let response = TlsConnection::open(server.http(), &config)
            .and_then(|mut connection| connection.call(inference("echo", "")));
        let response = response.unwrap_or_else(|e| panic!("after {:?}: {e}", begin.elapsed()));
        assert_eq!(response.status, 200);
        longest = longest.max(begin.elapsed());
        count += 1;
    }
    (count, longest)
}

#[test]
fn thousands_of_bad_handshakes_leave_memory_and_other_clients_alone() {
    let pki = pki();
    let flags = ["--tls-max-handshakes=256", "--tls-handshake-timeout-secs=3", "--metrics-tls=off"];
    let server = flags.into_iter().fold(encrypted(&pki, false), |server, flag| server.flag(flag));
    let server = server.start();
    let ended = AtomicBool::new(false);
    // A connection from before stays as it is.
    let config = client_config(&pki.servers, None, &["http/1.1"]);
    let mut kept = TlsConnection::open(server.http(), &config).unwrap();
    assert_eq!(kept.call(inference("echo", "")).unwrap().status, 200);
    let before = server.resident_kib();
    let (count, longest) = thread::scope(|scope| {
        let observer = scope.spawn(|| observe(&server, &pki, &ended));
        let end = SetOnDrop(&ended);
        attack(&server);
        drop(end);
        observer.join().expect("the well-behaved client")
    });
    assert!(longest < LIMIT, "{longest:?} for the slowest of {count} new connections");
    assert_eq!(kept.call(inference("echo", "")).unwrap().status, 200);
    server.poll_until("all have ended", |server| {
        let [stalled, died, lied] =
            ["timeout", "disconnected", "protocol"].map(|reason| failures(server, reason));
        stalled + died + lied >= 3.0 * EACH as f64
    });
    assert!(failures(&server, "protocol") >= EACH as f64 * 0.9, "{}", server.metrics_text());
    let grown = server.resident_kib().saturating_sub(before);
    println!(
        "{} handshakes: memory {before} KiB before, {grown} KiB more after; {count} new connections beside \
         them, the slowest {longest:?}",
        3 * EACH
    );
    assert!(grown < 32 << 10, "{grown} KiB more");
    assert!(server.stop().success());
}

#[test]
fn handshakes_end_at_their_timeout_and_at_shutdown() {
    let pki = pki();
    let server =
        encrypted(&pki, false).flag("--tls-handshake-timeout-secs=1").flag("--metrics-tls=off");
    let server = server.start();
    let begin = Instant::now();
    let mut stalled = connect(server.http(), HALF_HELLO).expect("a connection");
    assert_eq!(stalled.read(&mut [0; 64]).unwrap_or(0), 0);
    let after = begin.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_secs(10)).contains(&after), "{after:?}");
    server.poll_until("it is counted", |server| failures(server, "timeout") == 1.0);
    drop(server);
    let server = encrypted(&pki, false).flag("--tls-handshake-timeout-secs=0").start();
    let _stalled = connect(server.grpc(), HALF_HELLO);
    let begin = Instant::now();
    assert!(server.stop().success());
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
