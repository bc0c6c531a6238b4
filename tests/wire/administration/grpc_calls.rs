//! Reflection, compressed responses and delay hooks of gRPC calls, with the v2 client and plain
//! stubs.

use std::time::{Duration, Instant};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Server, grpc, probe, python_v2};

#[test]
fn reflection_describes_both_generations() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    python_v2(&server, "v2_administration.py", &["-k", "Reflection"]);
    assert!(server.stop().success());
}

/// The first byte of a message that was compressed.
const COMPRESSED: u8 = 1;

#[test]
fn responses_are_compressed_for_clients_that_accept_it() {
    for level in ["none", "low", "high"] {
        let server = Server::new()
            .model("echo", probe("echo", &[]))
            .flag(format!("--grpc-infer-response-compression-level={level}"))
            .start();
        for (accepted, magic) in [
            ("identity, deflate, gzip", &[0x1f, 0x8b][..]),
            ("deflate", &[0x78][..]),
            ("identity", &[][..]),
        ] {
            let compressed = level != "none" && !magic.is_empty();
            for (path, request) in [
                (grpc::INFER[0], grpc::infer_v2("echo", [1.0, 2.0])),
                (grpc::INFER[0], grpc::infer_v2_raw("echo", &[0; 40_000])),
                (grpc::STREAM[0], grpc::infer_v2_raw("echo", &[0; 40_000])),
            ] {
                let mut headers = call_headers(path);
                headers.push(("grpc-accept-encoding", accepted));
                let mut client = Client::open_wide(server.grpc());
                let call = client.call(&headers);
                client.send(call, &message(&request), true);
                let ended = client.end(call);
                assert_eq!(ended.status, Some(0), "{path} {accepted}");
                let expected = if compressed { COMPRESSED } else { 0 };
                assert_eq!(ended.body[0], expected, "{path} {accepted} {level}");
                if compressed {
                    assert!(ended.body[5..].starts_with(magic) && ended.body.len() < 1_000);
                }
            }
        }
        if level == "low" {
            python_v2(&server, "v2_administration.py", &["-k", "Compressed"]);
        }
        assert!(server.stop().success());
    }
}

#[test]
fn hooks_delay_calls() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .env("TRITONSERVER_DELAY_GRPC_PROCESS", "150")
        .env("TRITONSERVER_DELAY_RESPONSE_COMPLETION", "150")
        .env("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC", "1")
        .start();
    let begin = Instant::now();
    python_v2(&server, "v2_administration.py", &["-k", "Delayed"]);
    assert!(begin.elapsed() > Duration::from_millis(1300));
    assert!(server.stop().success());
}
