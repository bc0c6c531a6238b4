//! Limits of connections: timeouts of heads, bodies and idle connections, the age of a connection,
//! and their number.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use trtserver_tests::http1::request;
use trtserver_tests::http2::{Client, End, call_headers};
use trtserver_tests::{Connection, Latch, Running, Server, dist, inference, probe};

const LIVE: &[u8] = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";
const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

fn server(flags: &[&str]) -> Server {
    let server = Server::new().model("echo", probe("echo", &[]));
    flags.iter().fold(server, |server, flag| server.flag(*flag))
}

/// A new connection that has sent these bytes.
fn sent(address: &str, bytes: &[u8]) -> TcpStream {
    let open = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(bytes).map(|()| stream)
    };
    open().unwrap_or_else(|e: std::io::Error| panic!("cannot send to {address}: {e}"))
}

/// Waits until the server closes the connection, and returns when that was.
#[track_caller]
fn closed(mut stream: TcpStream, begin: Instant) -> Duration {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(e) => panic!("not closed: {e}"),
    }
    begin.elapsed()
}

#[test]
fn half_sent_requests_are_closed() {
    let flags = ["--request-header-timeout-secs=1", "--request-body-timeout-secs=1"];
    let server = server(&flags).start();
    let head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n";
    let begin = Instant::now();
    let open: Vec<TcpStream> = (0..200)
        .map(|i| {
            let mut bytes = head.to_vec();
            if i % 2 == 0 {
                bytes.extend(b"\r\n{\"inputs\":");
            }
            sent(server.http(), &bytes)
        })
        .collect();
    // Half of the preface of HTTP/2.
    let preface = sent(server.grpc(), b"PRI * HTTP/2.0\r\n");
    assert_eq!(server.get("/v2/health/live").status, 200);
    for stream in open.into_iter().chain([preface]) {
        let after = closed(stream, begin);
        assert!(
            (Duration::from_millis(900)..Duration::from_secs(10)).contains(&after),
            "{after:?}"
        );
    }
    assert_eq!(server.infer("echo", "").status, 200);
}

#[test]
fn late_body_gets_408_before_its_connection_is_closed() {
    let server = server(&["--request-body-timeout-secs=1"]).start();
    let header = "batch_size: 1 input { name: \"INPUT0\" dims: 2 } output { name: \"OUTPUT0\" }";
    for (path, extra) in [
        ("/v2/models/echo/infer", String::new()),
        ("/v2/repository/index", String::new()),
        ("/api/infer/echo", format!("NV-InferRequest: {header}\r\n")),
    ] {
        for half in ["", "{\"inp"] {
            let mut client = server.connect();
            client.send(format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\n{extra}Content-Length: 8\r\n\r\n{half}"
            ));
            let response = client.response();
            assert_eq!(response.status, 408, "{path}: {}", response.text());
            assert_eq!(response.header("connection"), Some("close"), "{path}");
            let text = response.error_text();
            assert!(text.contains("did not arrive in time"), "{path}: {text}");
            assert!(client.is_closed(), "{path}");
        }
    }
    assert_eq!(server.infer("echo", "").status, 200);
}

#[test]
fn half_sent_call_ends_alone() {
    let server = server(&["--request-body-timeout-secs=1"]).start();
    let mut client = Client::open(server.grpc());
    let stream = client.call(&call_headers(STREAM));
    let half = client.call(&call_headers(INFER));
    let half_message = client.call(&call_headers(STREAM));
    let begin = Instant::now();
    for call in [half, half_message] {
        client.send(call, &[0, 0, 0, 1, 0, 7], false);
    }
    let ended = client.ends(&[half, half_message]);
    assert!(ended.keys().eq(&[half, half_message]), "{ended:?}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    // A stream of messages may pause, and its connection lives on.
    client.send(stream, &[], true);
    assert_eq!(client.end(stream).end, End::Responded);
}

#[test]
fn body_with_progress_is_not_closed() {
    let flags = ["--request-body-timeout-secs=1", "--request-body-min-rate=100"];
    let server = server(&flags).start();
    let bytes = inference("echo", "");
    let (head, body) = bytes.split_at(bytes.len() - 100);
    let mut slow = server.connect();
    slow.send(head);
    let begin = Instant::now();
    for byte in body.chunks(10) {
        std::thread::sleep(Duration::from_millis(150));
        slow.send(byte);
    }
    assert!(begin.elapsed() > Duration::from_millis(1500));
    assert_eq!(slow.response().status, 200);
}

#[test]
fn idle_connections_are_closed_and_busy_ones_are_not() {
    let latch = Latch::new();
    let (key, path) = latch.config();
    let server = Server::new()
        .model("slow", probe("slow", &[(key, &path)]))
        .flag("--idle-timeout-secs=1")
        .start();
    let mut busy = server.connect();
    busy.send(inference("slow", ""));
    let begin = Instant::now();
    let silent = sent(server.http(), b"");
    let mut used = server.connect();
    assert_eq!(used.send(LIVE).response().status, 200);
    let mut calls = Client::open(server.grpc());
    assert!(closed(silent, begin) < Duration::from_secs(10));
    assert!(used.is_closed());
    // GOAWAY.
    assert_eq!(calls.end(1).end, End::Closed);
    assert!(begin.elapsed() > Duration::from_millis(900));
    latch.open();
    assert_eq!(busy.response().status, 200);
}

#[test]
fn connection_ends_at_its_age() {
    let server = server(&["--max-connection-age-secs=1"]).start();
    let mut connection = server.connect();
    let begin = Instant::now();
    let last = loop {
        let response = connection.send(LIVE).response();
        assert_eq!(response.status, 200);
        if response.header("connection") == Some("close") {
            break begin.elapsed();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(last > Duration::from_millis(900), "{last:?}");
    assert!(connection.is_closed());
    let mut calls = Client::open(server.grpc());
    assert_eq!(calls.end(1).end, End::Closed);
}

#[test]
fn oldest_idle_connection_makes_place_at_the_limit() {
    let server = server(&["--max-connections=10"]).start();
    let mut first = server.connect();
    assert_eq!(first.send(LIVE).response().status, 200);
    let mut others: Vec<Connection> = (0..30).map(|_| server.connect()).collect();
    let live = |server: &Running| server.get("/v2/health/live").status;
    assert_eq!(live(&server), 200);
    assert!(first.is_closed());
    for connection in others.iter_mut().rev().take(5) {
        assert_eq!(connection.send(LIVE).response().status, 200);
    }
}

#[test]
fn descriptors_are_kept_in_reserve() {
    let bin = dist().join("bin/trtserver");
    let limited = format!("ulimit -n 64; exec '{}' \"$0\" \"$@\"", bin.display());
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .program(["sh", "-c", &limited])
        .flag("--http-health-port=0")
        .start();
    let health = server.listening("health");
    let idle: Vec<TcpStream> = [server.http(), server.grpc(), server.metrics_address(), &health]
        .into_iter()
        .flat_map(|address| (0..50).map(move |_| address))
        .map(|address| sent(address, b""))
        .collect();
    let begin = Instant::now();
    assert_eq!(server.get("/v2/health/live").status, 200);
    assert_eq!(Connection::open(&health).send(LIVE).response().status, 200);
    assert!(!server.metrics_text().is_empty());
    assert_eq!(server.infer("echo", "").status, 200);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    drop(idle);
    let log = server.log();
    assert!(!log.contains("failed to accept"), "{log}");
}

#[test]
fn client_that_does_not_read_is_closed() {
    let server = server(&["--idle-timeout-secs=1"]).start();
    // Far more than the buffers of both systems hold; binary, which costs the server little.
    let elements = 1 << 20;
    let json = format!(
        r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,{elements}],"parameters":{{"binary_data_size":{}}}}}],"parameters":{{"binary_data_output":true}}}}"#,
        elements * 4
    );
    let head = [("Inference-Header-Content-Length", &*json.len().to_string())];
    let body = [json.as_bytes(), &vec![0; elements * 4]].concat();
    let bytes = request("POST", "/v2/models/echo/infer", &head, &body);
    let mut unread = sent(server.http(), b"");
    unread.set_write_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    // The server stops reading when it cannot write, and then closes.
    let ended = (0..100).find_map(|_| unread.write_all(&bytes).err()).expect("an end");
    let closed = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    assert!(closed.contains(&ended.kind()), "{ended}");
    assert_eq!(server.infer("echo", "").status, 200);
}

#[test]
fn vanished_peers_are_detected() {
    let server = server(&["--grpc-keepalive-time=100", "--grpc-keepalive-timeout=100"]).start();
    // TCP keep-alive: the timer of the server's socket.
    let client = sent(server.http(), LIVE);
    let (of_client, of_server) = (
        client.local_addr().map_or(0, |address| address.port()),
        client.peer_addr().map_or(0, |address| address.port()),
    );
    server.poll_until("a keep-alive timer", |_| {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let ports = (format!(":{of_server:04X}"), format!(":{of_client:04X}"));
        table.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is = |at: usize, port: &str| fields.get(at).is_some_and(|f| f.ends_with(port));
            is(1, &ports.0)
                && is(2, &ports.1)
                && fields.get(5).is_some_and(|f| f.starts_with("02:"))
        })
    });
    // This client does not answer pings.
    let begin = Instant::now();
    assert_eq!(Client::open(server.grpc()).end(1).end, End::Closed);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
