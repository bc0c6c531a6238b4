//! `X-Request-Id`: in responses of all HTTP endpoints and gRPC calls, and in log lines.

use trtserver_tests::http1::request;
use trtserver_tests::{Connection, Server, probe, python_v2};

const ID: (&str, &str) = ("X-Request-Id", "abc-1");

#[test]
fn responses_and_log_lines_have_the_id() {
    let server = Server::new().model("echo", probe("echo", &[])).flag("--log-verbose=2").start();
    for (method, path, body) in [
        ("GET", "/v2/health/ready", ""),
        ("GET", "/v2/nothing", ""),
        ("GET", "/api/status", ""),
        ("POST", "/v2/models/echo/infer", "{}"),
        ("POST", "/v2/models/absent/infer", "{}"),
    ] {
        let response = server.send(request(method, path, &[ID], body.as_bytes()));
        assert_eq!(response.header("x-request-id"), Some("abc-1"), "{path}");
        server.wait_for_log(&format!("request: {method} {path} request_id=abc-1"));
        server.wait_for_log(&format!("response: {} request_id=abc-1", response.status));
        let response = server.send(request(method, path, &[], body.as_bytes()));
        assert_eq!(response.header("x-request-id"), None, "{path}");
    }
    let mut metrics = Connection::open(server.metrics_address());
    let response = metrics.send(request("GET", "/metrics", &[ID], b"")).response();
    assert_eq!(response.header("x-request-id"), Some("abc-1"));
    python_v2(&server, "v2_administration.py", &["-k", "RequestId"]);
    server
        .wait_for_log("request: POST /inference.GRPCInferenceService/ModelInfer request_id=grpc-7");
    assert!(server.stop().success());
}

#[test]
fn cancellation_is_logged_with_the_id() {
    let server = Server::new().model("echo", probe("echo", &[])).flag("--log-verbose=1").start();
    let body = br#"{"parameters":{"until_cancelled":true},"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
    let mut client = server.connect();
    client.send(request("POST", "/v2/models/echo/infer", &[ID], body));
    server.wait_for_log("the probe waits to be cancelled");
    drop(client);
    server.wait_for_log("Cancellation notification received for HTTP inference request_id=abc-1");
    // Later lines do not have it.
    server.get("/v2/health/live");
    assert!(server.stop().success());
}
