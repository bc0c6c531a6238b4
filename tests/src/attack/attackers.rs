//! The attackers. Each sends what no client should, ignores the response, and begins anew when it
//! is refused or disconnected.

use super::Stop;
use super::payloads::Payloads;
use crate::grpc::{INFER, STREAM};
use crate::http2::{Client, NO_WINDOW, call_headers, message};
use crate::server::Running;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// An attacker waits this long for a response.
const WAIT: Duration = Duration::from_secs(2);

type Round<'a> = Box<dyn Fn() + Send + Sync + 'a>;

/// Attacks until `stop` is set, with every attack whose name contains `only`. Returns the rounds of
/// each.
pub fn attack(
    server: &Running,
    payloads: &Payloads,
    only: &str,
    stop: &Stop,
) -> Vec<(&'static str, u64)> {
    let post = |bytes: &[u8]| drop(http(server, bytes));
    let gzip = ("grpc-encoding", "gzip");
    let attacks: Vec<(&'static str, usize, Round)> = vec![
        ("json-bomb", 16, Box::new(|| post(&payloads.json_bomb))),
        ("numbers", 8, Box::new(|| post(&payloads.numbers))),
        ("whitespace", 32, Box::new(|| post(&payloads.whitespace))),
        (
            "message-bomb",
            4,
            Box::new(|| {
                for path in [
                    "/inference.GRPCInferenceService/ServerLive",
                    "/nvidia.inferenceserver.GRPCService/Status",
                    INFER[0],
                    INFER[1],
                    STREAM[0],
                    STREAM[1],
                ] {
                    grpc(server, path, &[gzip], &payloads.message_bomb);
                }
            }),
        ),
        ("empty-elements", 2, Box::new(|| grpc(server, INFER[0], &[], &payloads.empty_elements))),
        ("unread-stream", 2, Box::new(|| unread_stream(server, &payloads.flood))),
        ("unread-responses", 2, Box::new(|| unread_responses(server, &payloads.large_echo))),
        ("instances", 1, Box::new(|| post(&payloads.instances))),
        ("warm-up", 1, Box::new(|| post(&payloads.warm_up))),
        ("half-requests", 1, Box::new(|| half_requests(server))),
        ("slow-in-packet", 1, Box::new(|| slow_in_packet(server, &payloads.slow))),
    ];
    let attacks: Vec<_> = attacks.into_iter().filter(|(name, ..)| name.contains(only)).collect();
    let counts: Vec<_> = attacks.iter().map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for ((_, threads, round), count) in attacks.iter().zip(&counts) {
            for _ in 0..*threads {
                scope.spawn(move || {
                    yield_to_server();
                    while !stop.is_set() {
                        round();
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
    });
    let rounds = counts.iter().map(|count| count.load(Ordering::Relaxed));
    attacks.iter().map(|(name, ..)| *name).zip(rounds).collect()
}

/// Lowers the priority of this thread. Attackers usually have machines of their own; here they
/// share the processors with the server and its clients, whose latency would otherwise show the
/// attackers' use of time instead of the server's.
fn yield_to_server() {
    if let Err(e) = rustix::process::nice(19) {
        eprintln!("an attacker keeps its priority: {e}");
    }
}

/// Sends an HTTP request on a connection of its own and waits for the first bytes of the response.
fn http(server: &Running, bytes: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server.http())?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.write_all(bytes)?;
    stream.read(&mut [0; 512]).map(drop)
}

fn grpc(server: &Running, path: &str, more: &[(&str, &str)], body: &[u8]) {
    let Ok(mut client) = Client::try_open(server.grpc(), WAIT, &[]) else { return };
    if client.read_windows().is_err() {
        return;
    }
    let call = client.call(&[&call_headers(path), more].concat());
    client.send(call, body, true);
    let _ = client.try_end(call);
}

/// A million responses for a client whose window is 0.
fn unread_stream(server: &Running, flood: &[u8]) {
    let Ok(mut client) = Client::try_open(server.grpc(), WAIT, &[NO_WINDOW]) else { return };
    let call = client.call(&call_headers(STREAM[0]));
    client.send(call, flood, false);
    let _ = client.try_end(call);
}

/// 200 responses of 1 MiB for a client whose window is 0.
fn unread_responses(server: &Running, large: &[u8]) {
    let Ok(mut client) = Client::try_open(server.grpc(), WAIT, &[NO_WINDOW]) else { return };
    let mut last = 0;
    for _ in 0..200 {
        last = client.call(&[&call_headers(INFER[0])[..], &[("grpc-encoding", "gzip")]].concat());
        client.send(last, large, true);
    }
    let _ = client.try_end(last);
}

/// Connections with half of a head or half of a body.
fn half_requests(server: &Running) {
    let halves: [&[u8]; 2] = [
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: te",
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\n{",
    ];
    let connections: Vec<_> = halves
        .iter()
        .cycle()
        .take(200)
        .filter_map(|half| {
            let mut stream = TcpStream::connect(server.http()).ok()?;
            stream.write_all(half).ok()?;
            Some(stream)
        })
        .collect();
    thread::sleep(WAIT);
    drop(connections);
}

/// A call to a slow model and nine ServerLive in one packet.
fn slow_in_packet(server: &Running, slow: &[u8]) {
    let Ok(mut client) = Client::try_open(server.grpc(), WAIT, &[]) else { return };
    let mut last = 0;
    client.in_one_write(|client| {
        let call = client.call(&call_headers(INFER[0]));
        client.send(call, slow, true);
        for _ in 0..9 {
            last = client.call(&call_headers("/inference.GRPCInferenceService/ServerLive"));
            client.send(last, &message(&[]), true);
        }
    });
    let _ = client.try_end(last);
}
