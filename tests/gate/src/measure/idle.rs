//! Bytes that an idle connection holds: the server in a program that counts what is allocated
//! (`tests/counted`). The memory of the process for each is larger by what the allocator cannot give
//! back to the system: the table `idle` of the bench.

use super::counts::so_far;
use super::server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trtserver_tests::{Running, dist};

/// Connections to average.
const CONNECTIONS: usize = 500;
/// Opened and closed before: what the first ones allocate is not theirs.
const FIRST: usize = 50;
/// HTTP connections give their buffers back after a second or two without a request.
const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);
const REQUEST: &[u8] = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// The client's part of opening HTTP/2: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A wire and the bytes that an idle connection of it may hold.
pub struct IdleCeiling {
    pub wire: IdleWire,
    pub bytes: f64,
}

/// What a connection was used for before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleWire {
    /// A request.
    Http,
    /// The exchange of settings.
    Grpc,
}

/// Bytes of a connection, as soon as they are not above the ceiling, or after a limit of time.
pub fn measure(ceilings: &[IdleCeiling]) -> Vec<f64> {
    let server = server(0).program([dist().join("bin/trtserver-counted")]).start();
    ceilings.iter().map(|ceiling| one(&server, ceiling)).collect()
}

fn one(server: &Running, ceiling: &IdleCeiling) -> f64 {
    drop(open_used(server, ceiling.wire, FIRST));
    let before = settled_bytes(server);
    let connections = open_used(server, ceiling.wire, CONNECTIONS);
    let start = Instant::now();
    loop {
        let bytes = live_bytes(server).saturating_sub(before) as f64 / CONNECTIONS as f64;
        if bytes <= ceiling.bytes || start.elapsed() > LIMIT {
            drop(connections);
            return bytes;
        }
        sleep(PAUSE);
    }
}

fn live_bytes(server: &Running) -> u64 {
    let [.., live] = so_far(server);
    live
}

/// What is allocated once the first connections have ended.
fn settled_bytes(server: &Running) -> u64 {
    let mut last = live_bytes(server);
    loop {
        sleep(PAUSE);
        let now = live_bytes(server);
        if now >= last {
            return now;
        }
        last = now;
    }
}

/// New connections, each after its first use.
fn open_used(server: &Running, wire: IdleWire, count: usize) -> Vec<TcpStream> {
    let (address, bytes) = match wire {
        IdleWire::Http => (server.http(), REQUEST),
        IdleWire::Grpc => (server.grpc(), PREFACE),
    };
    let open = || {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(bytes)?;
        match stream.read(&mut [0; 4096])? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(stream),
        }
    };
    let opened: std::io::Result<_> = std::iter::repeat_with(open).take(count).collect();
    opened.unwrap_or_else(|e| panic!("cannot use {address}: {e}"))
}
