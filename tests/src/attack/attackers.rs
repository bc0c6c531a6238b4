//! The attackers. Each sends what no client should, and begins anew when it is refused or
//! disconnected. Those of this file ignore the response.

use super::loads::HostileLoads;
use super::payloads::Payloads;
use super::{Stop, heads, idle, loads, logs, stores};
use crate::grpc::{INFER, STREAM};
use crate::http2::{Client, NO_WINDOW, call_headers, message};
use crate::server::Running;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// An attacker waits this long for a response.
pub const WAIT: Duration = Duration::from_secs(2);

/// One kind of attack.
pub struct Attack<'a> {
    name: &'static str,
    threads: usize,
    /// What is repeated. The error is a promise of the server that does not hold.
    round: Box<dyn Fn() -> Result<(), String> + Send + Sync + 'a>,
}

impl<'a> Attack<'a> {
    pub fn new(
        name: &'static str,
        threads: usize,
        round: impl Fn() -> Result<(), String> + Send + Sync + 'a,
    ) -> Self {
        Self { name, threads, round: Box::new(round) }
    }
}

/// An attack that others notice, if anybody does.
pub fn harmless<'a>(
    name: &'static str,
    threads: usize,
    round: impl Fn() + Send + Sync + 'a,
) -> Attack<'a> {
    Attack::new(name, threads, move || {
        round();
        Ok(())
    })
}

/// What became of a kind of attack.
#[derive(Debug)]
pub struct AttackResult {
    pub name: &'static str,
    pub rounds: u64,
    /// Promises that did not hold, in words.
    pub violations: Vec<String>,
}

/// Attacks until `stop` is set, with every attack whose name contains `only`.
pub fn attack(
    server: &Running,
    (payloads, loads): (&Payloads, &HostileLoads),
    only: &str,
    stop: &Stop,
) -> Vec<AttackResult> {
    let mut attacks = floods(server, payloads);
    attacks.extend(idle::attacks(server));
    attacks.extend(heads::attacks(server));
    attacks.extend(loads::attacks(server, loads));
    attacks.extend(logs::attacks(server));
    attacks.extend(stores::attacks());
    attacks.retain(|attack| attack.name.contains(only));
    let counts: Vec<_> = attacks.iter().map(|_| AtomicU64::new(0)).collect();
    let found: Vec<_> = attacks.iter().map(|_| Mutex::new(BTreeSet::new())).collect();
    thread::scope(|scope| {
        for ((attack, count), found) in attacks.iter().zip(&counts).zip(&found) {
            for _ in 0..attack.threads {
                scope.spawn(move || {
                    yield_to_server();
                    while !stop.is_set() {
                        if let Err(text) = (attack.round)() {
                            found.lock().unwrap_or_else(PoisonError::into_inner).insert(text);
                        }
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
    });
    let results = attacks.iter().zip(counts).zip(found).map(|((attack, count), found)| {
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let violations = found.into_iter().collect();
        AttackResult { name: attack.name, rounds: count.into_inner(), violations }
    });
    results.collect()
}

/// Requests that are expensive to decode, execute or answer.
fn floods<'a>(server: &'a Running, payloads: &'a Payloads) -> Vec<Attack<'a>> {
    let post = |bytes: &[u8]| drop(http(server, bytes));
    vec![
        harmless("json-bomb", 16, move || post(&payloads.json_bomb)),
        harmless("numbers", 8, move || post(&payloads.numbers)),
        harmless("whitespace", 32, move || post(&payloads.whitespace)),
        harmless("message-bomb", 4, || message_bombs(server, &payloads.message_bomb)),
        harmless("empty-elements", 2, || grpc(server, INFER[0], &[], &payloads.empty_elements)),
        harmless("unread-stream", 2, || unread_stream(server, &payloads.flood)),
        harmless("unread-responses", 2, || unread_responses(server, &payloads.large_echo)),
        harmless("instances", 1, move || post(&payloads.instances)),
        harmless("warm-up", 1, move || post(&payloads.warm_up)),
        harmless("half-requests", 1, || half_requests(server)),
        harmless("slow-in-packet", 1, || slow_in_packet(server, &payloads.slow)),
    ]
}

/// A compressed message for each kind of RPC.
fn message_bombs(server: &Running, bomb: &[u8]) {
    for path in [
        "/inference.GRPCInferenceService/ServerLive",
        "/nvidia.inferenceserver.GRPCService/Status",
        INFER[0],
        INFER[1],
        STREAM[0],
        STREAM[1],
    ] {
        grpc(server, path, &[("grpc-encoding", "gzip")], bomb);
    }
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
