//! Heavy connections: calls with many headers, and long heads, are answered while their connection
//! moves to the threads of heavy connections and back.

use std::thread;
use std::time::{Duration, Instant};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Connection, Running, Server, probe};

const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";
/// Headers of a call that has many.
const HEADERS: usize = 100;
const CALLS: usize = 100;
/// Bytes of a long head: less than the server permits.
const LONG_HEAD: usize = 300 << 10;
/// The server waits 30 s for a connection that does not obey its order to finish.
const LONG_DRAIN: Duration = Duration::from_secs(20);

/// CPU time of the threads of heavy connections once they sleep: the system adds the time of a
/// thread when it stops.
fn heavy_cpu_time(server: &Running) -> Duration {
    let mut time = server.thread_cpu_time("net-heavy");
    loop {
        thread::sleep(Duration::from_millis(20));
        let before = std::mem::replace(&mut time, server.thread_cpu_time("net-heavy"));
        if time == before {
            return time;
        }
    }
}

/// Makes calls at once, and waits for the responses.
fn make_calls(client: &mut Client, count: usize, headers: usize) {
    let names: Vec<String> = (0..headers).map(|i| format!("x{i}")).collect();
    let mut all = call_headers(LIVE);
    all.extend(names.iter().map(|name| (name.as_str(), "")));
    let mut calls = Vec::new();
    client.in_one_write(|client| {
        for _ in 0..count {
            let call = client.call(&all);
            client.send(call, &message(&[]), true);
            calls.push(call);
        }
    });
    for (call, bytes) in client.ends(&calls) {
        // A length and `live: true`.
        assert_eq!(bytes, 7, "call {call} has another response");
    }
}

fn assert_short_drain(server: Running) {
    let begin = Instant::now();
    assert!(server.stop().success());
    assert!(begin.elapsed() < LONG_DRAIN, "the drain took {:?}", begin.elapsed());
}

#[test]
fn calls_with_many_headers_are_answered_by_threads_of_their_own() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let mut client = Client::open_wide(server.grpc());
    let before = heavy_cpu_time(&server);
    make_calls(&mut client, CALLS, HEADERS);
    let heavy = heavy_cpu_time(&server);
    assert!(heavy > before, "{before:?} and {heavy:?}");
    // A few calls at a time make the connection light again.
    for _ in 0..CALLS {
        make_calls(&mut client, 1, 0);
    }
    let before = heavy_cpu_time(&server);
    for _ in 0..CALLS {
        make_calls(&mut client, 1, 0);
    }
    assert_eq!(heavy_cpu_time(&server), before);
    make_calls(&mut client, CALLS, HEADERS);
    assert!(heavy_cpu_time(&server) > before);
    // The connection is heavy and idle.
    assert_short_drain(server);
}

#[test]
fn long_head_is_read_by_threads_of_its_own() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let get = |connection: &mut Connection, padding| {
        let padding = "a".repeat(padding);
        let head = format!("GET /v2 HTTP/1.1\r\nHost: test\r\nx-long: {padding}\r\n\r\n");
        assert_eq!(connection.send(head).response().status, 200);
        heavy_cpu_time(&server)
    };
    for _ in 0..3 {
        let mut connection = Connection::open(server.http());
        let before = get(&mut connection, 10);
        assert_eq!(get(&mut connection, 10), before);
        assert!(get(&mut connection, LONG_HEAD) > before);
        // The first short head makes the connection light again.
        let before = get(&mut connection, 10);
        assert_eq!(get(&mut connection, 10), before);
    }
    let mut heavy = Connection::open(server.http());
    heavy.send(format!("GET /v2 HTTP/1.1\r\nHost: test\r\nx-long: {}", "a".repeat(LONG_HEAD)));
    assert_short_drain(server);
}
