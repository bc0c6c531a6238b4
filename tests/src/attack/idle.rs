//! Attackers that open and send no more: gRPC calls without a message, with few headers and with
//! many, and long heads of HTTP/1 requests without an end. The client pays bytes for each; what the
//! server holds for them must stay within its budget, which the report checks.

use super::attackers::{Attack, WAIT, harmless};
use crate::grpc::{INFER, STREAM};
use crate::http2::{Client, call_headers};
use crate::server::Running;
use std::io::Write;
use std::net::TcpStream;
use std::thread;

/// Connections of one round, and the calls on each.
const CONNECTIONS: usize = 8;
const CALLS: usize = 500;
/// Headers of a call that has many: as many as a server accepts by default fit in one frame.
const HEADERS: usize = 400;
/// Unfinished heads of one round, and the length of each: less than the server permits.
const HEADS: usize = 100;
const HEAD_BYTES: usize = 300 << 10;

pub fn attacks<'a>(server: &'a Running) -> Vec<Attack<'a>> {
    vec![
        harmless("idle-calls", 2, || idle_calls(server, 0)),
        harmless("idle-calls-with-headers", 2, || idle_calls(server, HEADERS)),
        harmless("long-heads", 1, || long_heads(server)),
    ]
}

/// Calls of all kinds that never get a message.
fn idle_calls(server: &Running, headers: usize) {
    let names: Vec<String> = (0..headers).map(|i| format!("x{i}")).collect();
    let paths = [STREAM[0], STREAM[1], INFER[0], INFER[1]];
    let open = || {
        let mut client = Client::try_open(server.grpc(), WAIT, &[]).ok()?;
        client.read_windows().ok()?;
        // A part in each write: the server reads them while others are sent.
        for part in 0..10 {
            client.in_one_write(|client| {
                for call in 0..CALLS / 10 {
                    let mut all = call_headers(paths[(part + call) % paths.len()]);
                    all.extend(names.iter().map(|name| (name.as_str(), "")));
                    client.call(&all);
                }
            });
        }
        Some(client)
    };
    let clients: Vec<Client> = (0..CONNECTIONS).filter_map(|_| open()).collect();
    thread::sleep(WAIT);
    drop(clients);
}

/// Heads that are almost as long as permitted and do not end.
fn long_heads(server: &Running) {
    let mut head = b"GET /v2 HTTP/1.1\r\nHost: test\r\nx-long: ".to_vec();
    head.resize(head.len() + HEAD_BYTES, b'a');
    let open = |_| {
        let mut stream = TcpStream::connect(server.http()).ok()?;
        stream.set_write_timeout(Some(WAIT)).ok()?;
        // The server may close the connection meanwhile.
        let _ = stream.write_all(&head);
        Some(stream)
    };
    let connections: Vec<TcpStream> = (0..HEADS).filter_map(open).collect();
    thread::sleep(WAIT);
    drop(connections);
}
