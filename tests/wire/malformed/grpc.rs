//! Malformed gRPC calls: framing, headers and messages. None crashes the server, hangs or leaks
//! memory.

use super::SERVER;
use trtserver_tests::grpc::{INFER, STREAM, field};
use trtserver_tests::http2::{End, call, call_headers, garbage, message, prefixed};
use trtserver_tests::{Running, Server, probe};

const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";

/// Malformed bodies. Each fits into the initial flow-control window of 64 KiB.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let huge = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let endless = [0xff; 20];
    let nested = (0..2000).fold(Vec::new(), |inner, _| field(5, &inner));
    let name = field(1, b"echo");
    let tensor = field(1, b"INPUT0");
    vec![
        ("nothing", vec![]),
        ("half a prefix", vec![0, 0, 0]),
        ("a prefix alone", prefixed(0, 0, &[])),
        ("less than the prefix says", prefixed(0, 100, b"short")),
        ("four gigabytes announced", prefixed(0, u32::MAX, b"short")),
        ("two gigabytes announced", prefixed(0, i32::MAX as u32, b"short")),
        ("more than the prefix says", prefixed(0, 2, b"\x0a\x00more")),
        ("compressed without grpc-encoding", prefixed(1, 2, b"\x0a\x00")),
        ("a flag that does not exist", prefixed(7, 2, b"\x0a\x00")),
        ("two messages", [message(&name), message(&name)].concat()),
        ("a length beyond 64 bits", message(&huge)),
        ("a varint without end", message(&endless)),
        ("a field cut short", message(b"\x0a\x05ec")),
        ("field number 0", message(b"\x02\x00")),
        ("a wire type that does not exist", message(b"\x0f\x00")),
        ("a group without end", message(b"\x0b")),
        ("an end without a group", message(b"\x0c")),
        ("a name that is not UTF-8", message(&field(1, b"\xff\xfe"))),
        ("deeply nested messages", message(&nested)),
        ("a tensor without a shape", message(&[name.clone(), field(5, &tensor)].concat())),
        (
            "five thousand tensors",
            message(&[name.clone(), field(5, &tensor).repeat(5_000)].concat()),
        ),
        (
            "twenty-five thousand empty raw inputs",
            message(&[name, field(7, b"").repeat(25_000)].concat()),
        ),
    ]
}

fn assert_still_serves(server: &Running) {
    assert_eq!(call(server.grpc(), &call_headers(LIVE), &message(b"")), End::Responded);
    let response = server.infer("echo", "");
    assert_eq!(response.status, 200, "{}", response.text());
}

#[test]
fn malformed_messages_keep_the_connection() {
    for path in INFER.into_iter().chain(STREAM).chain([LIVE]) {
        for (what, body) in bodies() {
            let end = call(SERVER.grpc(), &call_headers(path), &body);
            assert_ne!(end, End::Closed, "{path}: {what}");
            assert_still_serves(&SERVER);
        }
    }
}

#[test]
fn malformed_call_headers() {
    for path in INFER {
        let ordinary = call_headers(path);
        let without = |name: &str| -> Vec<(&str, &str)> {
            ordinary.iter().copied().filter(|(n, _)| *n != name).collect()
        };
        let with =
            |name: &'static str, value: &'static str| [without(name), vec![(name, value)]].concat();
        for headers in [
            without("content-type"),
            without("te"),
            with("content-type", "text/plain"),
            with("content-type", "application/grpc+json"),
            with("grpc-encoding", "br"),
            with("grpc-encoding", "gzip"),
            with("grpc-timeout", "soon"),
            with("grpc-timeout", "0n"),
            with("grpc-timeout", "99999999999999999999S"),
            with("content-length", "3"),
            with("grpc-accept-encoding", "\u{7f}"),
        ] {
            let end = call(SERVER.grpc(), &headers, &prefixed(0, 6, b"\x0a\x04echo"));
            assert!(
                end != End::Closed || headers.contains(&("grpc-accept-encoding", "\u{7f}")),
                "{headers:?}"
            );
            assert_still_serves(&SERVER);
        }
    }
    let mut get = call_headers(LIVE);
    get[0].1 = "GET";
    assert_ne!(call(SERVER.grpc(), &get, &message(b"")), End::Closed);
    for path in ["", "/", "/inference.GRPCInferenceService/", "/absent/Nothing", "no slash"] {
        call(SERVER.grpc(), &call_headers(path), &message(b""));
        assert_still_serves(&SERVER);
    }
}

#[test]
fn malformed_http2_frames() {
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 100],
        vec![0xff; 100],
        // DATA on an unopened stream; a frame larger than allowed; HEADERS with invalid contents.
        vec![0, 0, 1, 0, 1, 0, 0, 0, 9, 0],
        [vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1], vec![0; 1000]].concat(),
        [vec![0, 0, 10, 1, 5, 0, 0, 0, 1], vec![0xff; 10]].concat(),
    ] {
        garbage(SERVER.grpc(), &bytes);
        assert_still_serves(&SERVER);
    }
}

#[test]
fn malformed_calls_leak_no_memory() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let bodies = bodies();
    let round = |times: usize| {
        for (i, (_, body)) in bodies.iter().cycle().take(times).enumerate() {
            let path = INFER.into_iter().chain(STREAM).nth(i % 4).unwrap_or(LIVE);
            call(server.grpc(), &call_headers(path), body);
        }
    };
    // Lazy allocations are done by now.
    round(500);
    let before = server.resident_kib();
    round(1000);
    let after = server.resident_kib();
    assert!(after < before + 8192, "resident memory grew from {before} KiB to {after} KiB");
    assert_still_serves(&server);
    assert!(server.stop().success());
}
