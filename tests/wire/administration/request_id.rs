//! `X-Request-Id`: in responses of all HTTP endpoints and gRPC calls, and in log lines.

use trtserver_tests::http1::request;
use trtserver_tests::{Connection, Server, folder, probe, python_v2};

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

/// Lines of an instance's own thread, which alone executes decoupled models, and of a batch.
#[test]
fn lines_of_executions_have_the_ids_of_the_batch() {
    let folder = folder();
    let file = folder.path().join("exists");
    std::fs::write(&file, "").unwrap();
    let path = file.display().to_string();
    let decoupled = "model_transaction_policy { decoupled: true }\n";
    let batched =
        "dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 600000000 }\n";
    let server = Server::new()
        .model("many", probe("many", &[("until_file", &path)]) + decoupled)
        .model("pairs", probe("pairs", &[("until_file", &path)]) + batched)
        .start();
    let body = r#"{"INPUT0":[1,2]}"#;
    assert_eq!(server.post("/v2/models/many/generate_stream", &[ID], body).status, 200);
    let line = format!("the probe waits for the file {path}");
    server.wait_for_log_with(&[&line, "request_id=abc-1"]);
    let mut clients = [server.connect(), server.connect()];
    for (client, id) in clients.iter_mut().zip(["one", "two"]) {
        let headers = [("X-Request-Id", id)];
        client.send(request("POST", "/v2/models/pairs/generate", &headers, body.as_bytes()));
        let sample = r#"nv_inference_pending_request_count{model="pairs",version="1"}"#;
        server.poll_until("it is queued or done", |server| {
            server.metrics(sample) == Some(if id == "one" { 1.0 } else { 0.0 })
        });
    }
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
    server.wait_for_log_with(&[&line, "request_id=one,two"]);
    assert!(server.stop().success());
}
