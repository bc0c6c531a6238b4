//! Shutdown by signal: the drain of executing and queued requests and of open sequences, the exit
//! timeout and the exit status.

use std::time::{Duration, Instant};
use trtserver_tests::http1::request;
use trtserver_tests::http2::{Client, End, call_headers};
use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{Connection, Latch, Response, Running, Server, Signal, inference, probe};

/// The error for new inference over v2.
const STOPPING: &str =
    "Server is stopping, scheduler for model has stopped accepting new inference requests";

/// Two requests to a model of one instance: one is executed, held by the latch, the other is
/// queued.
fn two_in_flight(server: &Running, latch: &Latch) -> [Connection; 2] {
    let mut connections = [server.connect(), server.connect()];
    for connection in &mut connections {
        connection.send(inference("slow", ""));
    }
    let sample = r#"nv_inference_pending_request_count{model="slow",version="1"}"#;
    latch.wait_for(server, 1);
    server.poll_until("the other is queued", |server| server.metrics(sample) == Some(1.0));
    connections
}

fn slow_server(latch: &Latch) -> Server {
    let (key, path) = latch.config();
    Server::new().model("slow", probe("slow", &[(key, &path)]))
}

#[test]
fn drain_completes_executing_and_queued_requests() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let latch = Latch::new();
        let server = slow_server(&latch).start();
        let connections = two_in_flight(&server, &latch);
        server.signal(signal);
        server.wait_for_log("in-flight requests");
        latch.open();
        for mut connection in connections {
            let response = connection.response();
            assert_eq!(response.status, 200, "{}", response.text());
        }
        let ended = server.wait();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        assert!(ended.stderr.contains("Waiting for in-flight inferences to complete."));
        assert!(ended.stderr.contains("in-flight requests"), "{}", ended.stderr);
        for line in [
            "Found 1 model versions that have in-flight inferences",
            "Model 'slow' (version 1) has 2 in-flight inferences",
        ] {
            assert!(ended.stderr.contains(line), "no {line:?} in {}", ended.stderr);
        }
    }
}

#[test]
fn drain_refuses_new_requests() {
    let latch = Latch::new();
    let server = slow_server(&latch).start();
    // Opened before, because a draining server need not accept new connections.
    let mut more: Vec<Connection> = (0..4).map(|_| server.connect()).collect();
    for connection in &mut more {
        connection.send("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(connection.response().status, 200);
    }
    let _under_way = two_in_flight(&server, &latch);
    server.signal(Signal::TERM);
    server.wait_for_log("Waiting for in-flight inferences to complete.");
    let mut send = |bytes: Vec<u8>| more.pop().expect("a connection").send(bytes).response();
    let refused = send(inference("slow", ""));
    assert_eq!((refused.status, refused.error_text().as_str()), (503, STOPPING));
    let health = send(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n".to_vec());
    assert_eq!((health.status, health.error_text().as_str()), (503, "Server exiting"));
    let health = send(b"GET /api/health/ready HTTP/1.1\r\nHost: x\r\n\r\n".to_vec());
    assert_eq!(health.status, 400);
    let says = health.error_text();
    assert!(says.contains("UNAVAILABLE") && says.contains("Server exiting"), "{says}");
}

/// INPUT0 of one INT32, in sequence 7, over HTTP v2 or v1.
fn in_sequence(v2: bool, model: &str, value: i32, start: bool, end: bool) -> Vec<u8> {
    if v2 {
        let json = format!(
            r#"{{"parameters":{{"sequence_id":7,"sequence_start":{start},"sequence_end":{end}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[{value}]}}]}}"#
        );
        return request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes());
    }
    let flags = u8::from(start) | u8::from(end) << 1;
    let header = format!(
        "batch_size: 1 correlation_id: 7 flags: {flags} input {{ name: \"INPUT0\" }} output {{ name: \"OUTPUT0\" }}"
    );
    let header = [("NV-InferRequest", &*header)];
    request("POST", &format!("/api/infer/{model}"), &header, &value.to_le_bytes())
}

/// The sum in its response.
#[track_caller]
fn sum(v2: bool, response: &Response) -> i32 {
    assert_eq!(response.status, 200, "{}", response.text());
    if v2 {
        let json = response.json();
        return json["outputs"][0]["data"][0].as_i64().unwrap_or_else(|| panic!("{json}")) as i32;
    }
    let Some(bytes) = response.body.first_chunk() else { panic!("{}", response.text()) };
    i32::from_le_bytes(*bytes)
}

fn summing(name: &str) -> String {
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let scheduling = sequences(NEVER, "oldest { max_candidate_sequences: 4 }", &controls);
    accumulator(name, 4, "corrid", &scheduling)
}

#[test]
fn drain_lets_open_sequences_end() {
    let through = "name: 'through' platform: 'ensemble' max_batch_size: 4\n\
        input { name: 'INPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        output { name: 'OUTPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        ensemble_scheduling { step { model_name: 'summing' model_version: -1\n\
        input_map { key: 'INPUT0' value: 'INPUT0' } output_map { key: 'OUTPUT0' value: 'OUTPUT0' } } }";
    for (v2, model) in
        [(true, "summing"), (false, "summing"), (true, "through"), (false, "through")]
    {
        let server = Server::new()
            .model("summing", summing("summing"))
            .model("through", through)
            .model("echo", probe("echo", &[]))
            .start();
        let mut client = server.connect();
        let mut step =
            |value, start, end| client.send(in_sequence(v2, model, value, start, end)).response();
        assert_eq!(sum(v2, &step(1, true, false)), 1);
        server.signal(Signal::TERM);
        server.wait_for_log("1 sequences have not ended");
        server.wait_for_log("Model 'summing' (version 1) has 1 in-flight inferences");
        assert_eq!(sum(v2, &step(10, false, false)), 11);
        // New requests and sequences are refused.
        let other = server.post(
            "/v2/models/echo/infer",
            &[],
            r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[1]}]}"#,
        );
        assert_eq!((other.status, &*other.error_text()), (503, STOPPING));
        let another = in_sequence(true, model, 5, true, true);
        let another =
            String::from_utf8(another).unwrap().replace("\"sequence_id\":7", "\"sequence_id\":8");
        assert_eq!(server.send(another).status, 503);
        // So is a START of the open sequence, which would begin it anew.
        let again = server.send(in_sequence(v2, model, 5, true, false));
        assert_eq!(again.status, if v2 { 503 } else { 400 }, "{}", again.text());
        assert_eq!(server.get(&format!("/v2/models/{model}/config")).status, 503);
        assert_eq!(sum(v2, &step(100, false, true)), 111);
        let ended = server.wait();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
    }
}

#[test]
fn unfinished_sequence_ends_with_the_sequence_timeout() {
    let server = Server::new()
        .model("summing", summing("summing"))
        .flag("--exit-sequence-timeout-secs=1")
        .start();
    assert_eq!(sum(true, &server.send(in_sequence(true, "summing", 1, true, false))), 1);
    let begin = Instant::now();
    server.signal(Signal::TERM);
    let ended = server.wait();
    // No accepted request was lost.
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let text = "1 sequences have not ended within 1s";
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
}

#[test]
fn half_sent_requests_do_not_delay_exit() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let bytes = inference("echo", "");
    let mut half: Vec<Connection> = (0..4).map(|_| server.connect()).collect();
    for (connection, length) in half.iter_mut().zip([10, 30, bytes.len() - 50, bytes.len() - 1]) {
        connection.send(&bytes[..length]);
    }
    let mut calls = Client::open(server.grpc());
    let call = calls.call(&call_headers("/inference.GRPCInferenceService/ModelInfer"));
    calls.send(call, &[0, 0, 0, 1, 0, 7], false);
    // What was sent above has arrived.
    assert_eq!(server.infer("echo", "").status, 200);
    let begin = Instant::now();
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    assert!(!ended.stderr.contains("Exit timeout expired"), "{}", ended.stderr);
}

#[test]
fn last_responses_close_their_connections() {
    let latch = Latch::new();
    let server = slow_server(&latch).start();
    let mut idle = server.connect();
    let live = request("GET", "/v2/health/live", &[], b"");
    assert_eq!(idle.send(live).response().status, 200);
    let mut calls = Client::open(server.grpc());
    let connections = two_in_flight(&server, &latch);
    server.signal(Signal::TERM);
    server.wait_for_log("in-flight requests");
    // GOAWAY is sent while requests are executed.
    assert_eq!(calls.end(1).end, End::Closed);
    // A connection that was idle at the signal still gets a response.
    let refused = idle.send(inference("slow", "")).response();
    assert!(refused.status >= 400);
    assert_eq!(refused.header("connection"), Some("close"));
    latch.open();
    for mut connection in connections {
        let response = connection.response();
        assert_eq!((response.status, response.header("connection")), (200, Some("close")));
        assert!(connection.is_closed());
    }
    assert_eq!(server.wait().code(), 0);
}

#[test]
fn exit_timeout_ends_with_status_1() {
    let latch = Latch::new();
    let server = slow_server(&latch).flag("--exit-timeout-secs=1").start();
    let _under_way = two_in_flight(&server, &latch);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("Exit timeout expired. Exiting immediately."),
        "{}",
        ended.stderr
    );
}

#[test]
fn second_signal_ends_immediately() {
    let latch = Latch::new();
    let server = slow_server(&latch).start();
    let _under_way = two_in_flight(&server, &latch);
    server.signal(Signal::TERM);
    server.wait_for_log("Interrupt signal (15) received.");
    server.wait_for_log("in-flight requests");
    server.signal(Signal::INT);
    let ended = server.wait();
    assert_eq!(ended.code(), 1);
}

#[test]
fn idle_connections_do_not_delay_shutdown() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let mut idle: Vec<Connection> = (0..20).map(|_| server.connect()).collect();
    for connection in idle.iter_mut().take(10) {
        connection.send(inference("echo", ""));
        assert_eq!(connection.response().status, 200);
    }
    server.signal(Signal::TERM);
    // Waiting for the connections would end in exit status 1, after the exit timeout.
    assert_eq!(server.wait().code(), 0);
    for connection in &mut idle {
        assert!(connection.is_closed());
    }
}
