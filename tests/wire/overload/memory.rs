//! The memory budget and the limits of messages: what does not fit is refused, and the server's
//! memory stays bounded.

use super::{gzip, wide};
use trtserver_tests::grpc::{INFER, STREAM, field};
use trtserver_tests::http1::request;
use trtserver_tests::http2::{Client, call_headers, message, prefixed};
use trtserver_tests::{Response, Running, Server, dist, probe};

const RESOURCE_EXHAUSTED: Option<u8> = Some(8);
const IN_USE: &str = "trtserver_request_memory_bytes";

/// Sends the same compressed request on several connections at once.
fn flood(server: &Running, count: usize, body: &[u8]) -> Vec<Response> {
    let bytes = request("POST", "/v2/models/echo/infer", &[("Content-Encoding", "gzip")], body);
    let mut all: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for connection in &mut all {
        connection.send(&bytes);
    }
    all.iter_mut().map(|connection| connection.response()).collect()
}

#[track_caller]
fn assert_refused(server: &Running, path: &str, encoding: Option<&str>, body: &[u8]) {
    let mut headers = call_headers(path);
    headers.extend(encoding.map(|encoding| ("grpc-encoding", encoding)));
    let mut client = Client::open_wide(server.grpc());
    let call = client.call(&headers);
    client.send(call, body, true);
    let ended = client.end(call);
    assert_eq!(ended.status, RESOURCE_EXHAUSTED, "{path}: {ended:?}");
}

fn assert_serves(server: &Running) {
    let response = server.infer("echo", "");
    assert_eq!(response.status, 200, "{}", response.text());
    server.poll_until("all memory is given back", |server| server.metrics(IN_USE) == Some(0.0));
}

#[test]
fn expansions_beyond_the_budget_are_refused() {
    let server =
        Server::new().model("echo", probe("echo", &[])).flag("--max-request-memory=24M").start();
    assert_serves(&server);
    let before = server.resident_kib();
    let responses = flood(&server, 20, &gzip(&vec![b' '; 8 << 20]));
    let after = server.resident_kib();
    let refused: Vec<_> = responses.iter().filter(|r| r.status == 429).collect();
    // Bodies that fit into the budget are refused later: they are not JSON.
    assert!(responses.iter().all(|r| matches!(r.status, 429 | 500)), "{responses:?}");
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|r| r.header("retry-after") == Some("1")));
    let text = refused[0].error_text();
    assert!(text.contains("--max-request-memory") && text.contains("25165824"), "{text}");
    assert!(after < before + (40 << 10), "resident memory grew from {before} KiB to {after} KiB");
    let counted = server.metrics(r#"trtserver_request_refusals_total{reason="memory_budget"}"#);
    assert_eq!(counted, Some(refused.len() as f64));
    assert_serves(&server);
}

#[test]
fn bodies_beyond_the_budget_are_refused() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("wide", wide())
        .flag("--max-request-memory=2M")
        .start();
    let raw = vec![0; 3 << 20];
    let http =
        server.post("/v2/models/wide/infer", &[("Inference-Header-Content-Length", "0")], &raw);
    assert_eq!(http.status, 429, "{}", http.text());
    let v1 = "batch_size: 1 input { name: \"INPUT0\" dims: 786432 } output { name: \"OUTPUT0\" }";
    let v1 = server.post("/api/infer/wide", &[("NV-InferRequest", v1)], &raw);
    assert_eq!(v1.status, 429, "{}", v1.error_text());
    assert_eq!(v1.header("retry-after"), Some("1"));
    for (path, number) in INFER.into_iter().zip([7, 4]) {
        let body = message(&[field(1, b"wide"), field(number, &raw)].concat());
        assert_refused(&server, path, None, &body);
    }
    // The requests are refused, not the responses, which draw on the budget, too.
    let executed = server.metrics(r#"trtserver_batch_rows_count{model="wide",version="1"}"#);
    assert_eq!(executed, Some(0.0));
    assert_serves(&server);
}

#[test]
fn grpc_expansion_is_limited() {
    let server =
        Server::new().model("echo", probe("echo", &[])).flag("--grpc-max-expanded-size=8M").start();
    // An unknown field of 64 MiB.
    let packed = gzip(&field(900, &vec![0; 64 << 20]));
    assert_serves(&server);
    let before = server.resident_kib();
    let others = [
        "/inference.GRPCInferenceService/ServerLive",
        "/nvidia.inferenceserver.GRPCService/Status",
        "/grpc.health.v1.Health/Check",
    ];
    for path in INFER.into_iter().chain(STREAM).chain(others) {
        let body = prefixed(1, packed.len() as u32, &packed);
        assert_refused(&server, path, Some("gzip"), &body);
    }
    let after = server.resident_kib();
    assert!(after < before + (24 << 10), "resident memory grew from {before} KiB to {after} KiB");
    assert_serves(&server);
}

#[test]
fn grpc_message_size_is_limited() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--grpc-max-message-size=100K")
        .start();
    for path in INFER.into_iter().chain(STREAM) {
        let body = message(&field(900, &vec![0; 200 << 10]));
        assert_refused(&server, path, None, &body);
    }
    assert_serves(&server);
}

#[test]
fn elements_of_lists_are_drawn_from_the_budget() {
    let server =
        Server::new().model("echo", probe("echo", &[])).flag("--max-request-memory=64M").start();
    assert_serves(&server);
    let before = server.resident_kib();
    // Two bytes each on the wire, 32 and more in memory.
    for ((path, list), model) in INFER.into_iter().zip([7, 4]).zip([b"echo"; 2]) {
        let body = message(&[field(1, model), field(list, b"").repeat(1_500_000)].concat());
        assert_refused(&server, path, None, &body);
    }
    let after = server.resident_kib();
    assert!(after < before + (32 << 10), "resident memory grew from {before} KiB to {after} KiB");
    assert_serves(&server);
}

#[test]
fn exhausted_address_space_is_an_error() {
    let limited =
        format!("ulimit -v 786432; exec {}/bin/trtserver \"$0\" \"$@\"", dist().display());
    let server =
        Server::new().model("echo", probe("echo", &[])).program(["sh", "-c", &limited]).start();
    // Their first byte is refused: a server without optimisation would parse blanks for a minute.
    let responses = flood(&server, 12, &gzip(&vec![b'x'; 60 << 20]));
    assert!(responses.iter().all(|r| matches!(r.status, 429 | 500)), "{responses:?}");
    assert!(responses.iter().any(|r| r.status == 429));
    // Announced, but not sent.
    let announced: Vec<_> = (0..30)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(
                "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: 2\r\n\
                 Content-Length: 100000000\r\n\r\n{}",
            );
            connection
        })
        .collect();
    let response = server.infer("echo", "");
    assert_eq!(response.status, 200, "{}", response.text());
    drop(announced);
    assert_serves(&server);
}
