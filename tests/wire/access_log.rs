//! `--access-log`: one line of JSON for each request, of both generations over both wires.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what these tests cannot do is a failure"
)]

use crate::tokens::{AuthFile, call, send};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::path::Path;
use trtserver_tests::grpc::{INFER, STREAM, infer_v1, infer_v2};
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

/// What a line says of a call's caller and outcome: name, status and the beginning of the error.
fn outcome(line: &Value) -> (Option<&str>, Option<u64>, Option<&str>) {
    let error = line["error"].as_str().map(|text| &text[..text.len().min(20)]);
    (line["caller"].as_str(), line["status"].as_u64(), error)
}

#[test]
fn lines_name_the_caller_and_refused_calls_have_one_too() {
    let dir = folder();
    let log = dir.path().join("access.jsonl");
    let file = AuthFile::new(
        "anonymous - read:health\nteam {team} infer,read:*:echo\nslow {slow} infer rate=1\n",
    );
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("other", probe("other", &[]))
        .flag(format!("--access-log={}", log.display()))
        .flag(file.flag())
        .start();
    let body = br#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
    let infer = "/v2/models/echo/infer";
    let lacks = Some("'team' may not do th");
    let (unknown, no_token) = (Some("the token in header "), Some("expected a token (he"));
    let http = [
        (None, "GET", "/v2/health/live", Some("anonymous"), 200, None),
        (Some("team"), "POST", infer, Some("team"), 200, None),
        (Some("wrong"), "POST", infer, None, 401, unknown),
        (None, "POST", infer, Some("anonymous"), 401, no_token),
        (Some("team"), "POST", "/v2/models/other/infer", Some("team"), 403, lacks),
        (Some("team"), "POST", "/api/infer/other", Some("team"), 403, lacks),
        (Some("team"), "GET", "/v2/models", Some("team"), 403, lacks),
    ];
    let mut expected = Vec::new();
    for (name, method, path, caller, status, error) in http {
        assert_eq!(u64::from(send(server.http(), name, method, path, body).status), status);
        expected.push((caller, Some(status), error));
    }
    for (path, contents) in INFER.into_iter().zip([infer_v2, infer_v1]) {
        let table = [
            (Some("team"), "echo", Some("team"), 0, None),
            (Some("team"), "other", Some("team"), 7, lacks),
            (Some("wrong"), "echo", None, 16, unknown),
        ];
        for (name, model, caller, status, error) in table {
            let ended = call(&server, name, path, &contents(model, [1.0, 2.0]));
            assert_eq!(ended.status, Some(status), "{path} {model}");
            expected.push((caller, Some(status.into()), error));
        }
    }
    for (path, contents) in STREAM.into_iter().zip([infer_v2, infer_v1]) {
        let ended = call(&server, Some("team"), path, &contents("other", [1.0, 2.0]));
        assert_eq!(ended.status, Some(0), "{path}");
        // The request, and the stream.
        expected.extend([(Some("team"), None, lacks), (Some("team"), Some(0), None)]);
    }
    server.poll_until("each has a line", |_| lines(&log).len() == expected.len());
    // Each attempt takes the turn of its second, or comes too late to be refused.
    server.poll_until("a request is too fast", |server| {
        send(server.http(), Some("slow"), "POST", infer, body).status == 429
    });
    server.poll_until("a call is too fast", |server| {
        call(server, Some("slow"), INFER[0], &infer_v2("echo", [1.0, 2.0])).status == Some(8)
    });
    assert!(server.stop().success());
    let found = lines(&log);
    let mut outcomes: Vec<_> = found.iter().map(outcome).collect();
    // Two calls one after another may end in the other order.
    outcomes[..expected.len()].sort();
    expected.sort();
    assert_eq!(outcomes[..expected.len()], expected[..]);
    let fast = Some("'slow' may send 1 re");
    for status in [429, 8] {
        assert!(outcomes.contains(&(Some("slow"), Some(status), fast)), "{outcomes:?}");
    }
    assert!(found.iter().all(|line| line["peer"].as_str().is_some_and(|p| p.contains(':'))));
    assert!(found.iter().all(|line| !line.to_string().contains("-token")), "{found:?}");
}
