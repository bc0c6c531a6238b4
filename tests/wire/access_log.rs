//! `--access-log`: one line of JSON for each request, of both generations over both wires.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what these tests cannot do is a failure"
)]

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::path::Path;
use trtserver_tests::grpc::INFER;
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::isolated::isolated;
use trtserver_tests::{
    ENDPOINTS, Endpoint, InferenceClient, Latch, Running, Server, Signal, folder, probe,
};

fn start(log: &Path) -> Running {
    Server::new()
        .model("echo", probe("echo", &[]))
        .model("isolated", isolated("isolated", &[]))
        .flag(format!("--access-log={}", log.display()))
        .start()
}

/// Waits for `more` lines, so that those of the next request come behind them.
#[track_caller]
fn wait_for_lines(server: &Running, log: &Path, seen: &mut usize, more: usize) {
    *seen += more;
    server.poll_until("the line is there", |_| lines(log).len() >= *seen);
}

fn lines(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).expect("the access log");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Without what differs from run to run, which is checked: times, and the address of the client.
fn stable(mut line: Value) -> Value {
    let fields = line.as_object_mut().expect("an object");
    let time = fields.remove("time").expect("a time");
    assert_eq!(time.as_str().map(str::len), Some("2026-11-27T04:00:00.000123Z".len()), "{time}");
    let peer = fields.remove("peer").expect("a peer");
    assert!(peer.as_str().expect("text").starts_with("127.0.0.1:"), "{peer}");
    let total = fields.remove("total_us").expect("a total").as_u64().expect("a number");
    let times = ["queue_us", "compute_us"].map(|name| fields.remove(name));
    if fields.contains_key("executed_batch_size") {
        let sum: u64 = times.iter().flatten().filter_map(Value::as_u64).sum();
        assert!(times.iter().all(Option::is_some) && sum <= total, "{times:?} of {total}");
    }
    line
}

#[test]
fn one_line_for_each_request() {
    let dir = folder();
    let log = dir.path().join("access.jsonl");
    let server = start(&log);
    let mut seen = 0;
    for endpoint in ENDPOINTS {
        assert!(InferenceClient::send(&server, endpoint, "echo", [1.0, 2.0]).is_echoed());
        let is_stream = matches!(endpoint, Endpoint::StreamV1 | Endpoint::StreamV2);
        wait_for_lines(&server, &log, &mut seen, if is_stream { 2 } else { 1 });
    }
    assert!(InferenceClient::send(&server, Endpoint::HttpV2, "isolated", [1.0, 2.0]).is_echoed());
    wait_for_lines(&server, &log, &mut seen, 1);
    assert_eq!(server.get("/v2/health/live").status, 200);
    wait_for_lines(&server, &log, &mut seen, 1);
    assert_eq!(server.get("/v2/models/none").status, 404);
    wait_for_lines(&server, &log, &mut seen, 1);
    assert_eq!(server.infer("none", "").status, 404);
    wait_for_lines(&server, &log, &mut seen, 1);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("X-Request-Id", "r-1"), ("traceparent", parent)];
    let body =
        r#"{"id":"i-1","inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}]}"#;
    assert_eq!(server.post("/v2/models/echo/infer", &headers, body).status, 400);
    server.metrics_text();
    assert!(server.stop().success());
    let found: Vec<_> = lines(&log).into_iter().map(stable).collect();
    let echo = |wire: &str, more: Value| {
        let mut line = json!({
            "wire": wire, "model": "echo", "version": 1, "batch_size": 1,
            "executed_batch_size": 1,
        });
        let more = more.as_object().expect("an object").clone();
        line.as_object_mut().expect("an object").extend(more);
        line
    };
    let http = |path: &str, received: u64, sent: &Value| {
        echo(
            "http",
            json!({"method": "POST", "path": path, "bytes_in": received,
            "bytes_out": sent, "status": 200}),
        )
    };
    let grpc = |rpc: &str, received: u64, sent: &Value| {
        echo("grpc", json!({"rpc": rpc, "bytes_in": received, "bytes_out": sent, "status": 0}))
    };
    let v1 = "nvidia.inferenceserver.GRPCService";
    let v2 = "inference.GRPCInferenceService";
    let sent = |i: usize| found[i]["bytes_out"].clone();
    let body = |endpoint: Endpoint| match endpoint {
        // Only the body, which is behind the empty line.
        Endpoint::HttpV1 | Endpoint::HttpV2 => {
            let bytes = endpoint.bytes("echo", [1.0, 2.0]);
            let head = bytes.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
            (bytes.len() - head - 4) as u64
        }
        _ => endpoint.bytes("echo", [1.0, 2.0]).len() as u64,
    };
    // An inference of a stream has a line of its own, without bytes and before its stream's.
    let streamed = |rpc: &str| echo("grpc", json!({"rpc": rpc}));
    let stream = |rpc: &str, received: u64, sent: &Value| json!({"wire": "grpc", "rpc": rpc, "bytes_in": received, "bytes_out": sent, "status": 0});
    let get = |path: &str, status: u64, sent: &Value| {
        json!({"wire": "http", "method": "GET", "path": path, "bytes_in": 0, "bytes_out": sent,
            "status": status})
    };
    let mut isolated = http("/v2/models/isolated/infer", body(Endpoint::HttpV2), &sent(8));
    isolated["model"] = json!("isolated");
    let expected = vec![
        http("/api/infer/echo", body(Endpoint::HttpV1), &sent(0)),
        http("/v2/models/echo/infer", body(Endpoint::HttpV2), &sent(1)),
        grpc(&format!("{v1}/Infer"), body(Endpoint::GrpcV1), &sent(2)),
        grpc(&format!("{v2}/ModelInfer"), body(Endpoint::GrpcV2), &sent(3)),
        streamed(&format!("{v1}/StreamInfer")),
        stream(&format!("{v1}/StreamInfer"), body(Endpoint::StreamV1), &sent(5)),
        streamed(&format!("{v2}/ModelStreamInfer")),
        stream(&format!("{v2}/ModelStreamInfer"), body(Endpoint::StreamV2), &sent(7)),
        isolated,
        get("/v2/health/live", 200, &json!(0)),
        get("/v2/models/none", 404, &sent(10)),
    ];
    assert_eq!(found[..expected.len()], expected[..]);
    let [unknown, refused] = &found[expected.len()..] else { panic!("more lines: {found:#?}") };
    assert_eq!(
        (&unknown["status"], &unknown["path"]),
        (&json!(404), &json!("/v2/models/none/infer"))
    );
    assert_eq!(refused["status"], 400);
    assert_eq!(refused["request_id"], "r-1");
    assert_eq!(refused["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(refused["model"], "echo");
    assert!(refused["error"].as_str().is_some_and(|e| e.contains("INPUT0")), "{refused}");
    let sizes = [0, 1, 2, 3, 5, 7].map(|i| found[i]["bytes_out"].as_u64());
    assert!(sizes.iter().all(|size| *size >= Some(8)), "{sizes:?}");
}

#[test]
fn clients_that_leave_and_calls_that_fail() {
    let dir = folder();
    let log = dir.path().join("access.jsonl");
    let latch = Latch::new();
    let (key, value) = latch.config();
    let server = Server::new()
        .model("held", probe("held", &[(key, &value)]))
        .flag(format!("--access-log={}", log.display()))
        .start();
    let mut client = Client::open(server.grpc());
    let call = client.call(&call_headers(INFER[0]));
    client.send(call, &message(b"\xff"), true);
    assert_ne!(client.end(call).status, Some(0));
    drop(client);
    let held = InferenceClient::send(&server, Endpoint::GrpcV2, "held", [1.0, 2.0]);
    latch.wait_for(&server, 1);
    drop(held.reset());
    server.poll_until("both have a line", |_| lines(&log).len() == 2);
    let found = lines(&log);
    assert_ne!(found[0]["status"], 0, "{}", found[0]);
    assert!(found[0]["error"].is_string(), "{}", found[0]);
    assert_eq!(found[1]["disconnected"], true, "{}", found[1]);
    assert!(found[1]["status"].is_null(), "{}", found[1]);
    latch.open();
}

#[test]
fn hangup_opens_the_access_log_anew_and_a_stalled_reader_costs_lines_only() {
    let dir = folder();
    let (log, old) = (dir.path().join("access.jsonl"), dir.path().join("access.jsonl.1"));
    let server = start(&log);
    server.get("/v2");
    server.poll_until("it has a line", |_| lines(&log).len() == 1);
    fs::rename(&log, &old).expect("the log is renamed");
    server.signal(Signal::HUP);
    server.wait_for_log("the access log is re-opened");
    server.get("/v2");
    server.poll_until("the new file has a line", |_| log.exists() && lines(&log).len() == 1);
    assert_eq!(server.metrics("trtserver_access_log_lines_total"), Some(2.0));
    assert!(server.stop().success());
    assert_eq!(lines(&old).len(), 1);

    // Nobody reads the pipe; it is open at both ends, so that no side waits for the other.
    let pipe = dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let _reader = OpenOptions::new().read(true).write(true).open(&pipe).expect("the pipe");
    let server = start(&pipe);
    let dropped = r#"trtserver_access_log_dropped_total{reason="queue_full"}"#;
    let mut connection = server.connect();
    let requests = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n".repeat(250);
    // More than the pipe and the queue have place for.
    for _ in 0..40 {
        connection.send(&requests);
        assert!((0..250).all(|_| connection.response().status == 200));
    }
    server.poll_until("lines are dropped", |server| server.metrics(dropped) > Some(0.0));
    assert!(server.stop().success());
}
