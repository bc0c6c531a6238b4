//! `generate` and `generate_stream`: JSON members as tensors and parameters, server-sent events.

use std::sync::LazyLock;
use trtserver_tests::http1::{Connection, request};
use trtserver_tests::{Response, Running, Server, parameters, probe};

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }\n";

/// Output i is input i.
const MIXED: &str = r#"
backend: "probe"
max_batch_size: 4
input [
  { name: "text" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "numbers" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "whole" data_type: TYPE_INT64 dims: [ 2, 2 ] },
  { name: "half" data_type: TYPE_FP16 dims: [ 1 ] },
  { name: "truth" data_type: TYPE_BOOL dims: [ -1 ] }
]
output [
  { name: "a_text" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "some_numbers" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "whole_out" data_type: TYPE_INT64 dims: [ 2, 2 ] },
  { name: "half_out" data_type: TYPE_FP16 dims: [ 1 ] },
  { name: "truth_out" data_type: TYPE_BOOL dims: [ -1 ] }
]
"#;

fn sums() -> String {
    let tensor = r#"[ { name: "NAME" data_type: TYPE_INT32 dims: [ 1 ] } ]"#;
    format!(
        "backend: \"probe\"\nmax_batch_size: 4\ninput {}\noutput {}\nsequence_batching {{}}\n{}",
        tensor.replace("NAME", "INPUT0"),
        tensor.replace("NAME", "OUTPUT0"),
        parameters(&[("accumulate", "corrid")])
    )
}

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    Server::new()
        .model("mixed", MIXED)
        .model("one", probe("one", &[]))
        .model("many", probe("many", &[]) + DECOUPLED)
        .model("isolated", probe("isolated", &[("isolation", "process")]) + DECOUPLED)
        .model("sums", sums())
        .start_shared()
});

fn generate(model: &str, json: &str) -> Response {
    SERVER.post(&format!("/v2/models/{model}/generate"), &[], json)
}

fn generate_stream(model: &str, json: &str) -> Response {
    SERVER.post(&format!("/v2/models/{model}/generate_stream"), &[], json)
}

#[test]
fn members_become_tensors_and_outputs_members() {
    let json = r#"{"text":"hi","numbers":[1,2.5],"parameters":{"whole":[1,2,3,4],"half":0.1,"free":"x"},"truth":[true],"id":"i"}"#;
    let response = generate("mixed", json);
    let want = r#"{"a_text":"hi","half_out":0.1,"id":"i","model_name":"mixed","model_version":"1","some_numbers":[1.0,2.5],"truth_out":true,"whole_out":[1,2,3,4]}"#;
    assert_eq!((response.status, response.text()), (200, want.to_owned()));
    assert_eq!(response.header("content-type"), Some("application/json"));
    let path = "/v2/models/one/versions/1/generate";
    let versioned = SERVER.post(path, &[], r#"{"INPUT0":7}"#);
    assert_eq!(versioned.text(), r#"{"OUTPUT0":7.0,"model_name":"one","model_version":"1"}"#);
    let stream = generate_stream("mixed", json);
    let want = r#"data: {"a_text":"hi","half_out":0.1,"id":"i","model_name":"mixed","model_version":"1","some_numbers":[1.0,2.5],"truth_out":true,"whole_out":[1,2,3,4]}"#;
    assert_eq!(stream.text(), format!("{want}\n\n"));
}

#[test]
fn refused_requests_get_json_errors() {
    let one = r#"{"INPUT0":1"#;
    for (model, json, status, text) in [
        ("absent", "{}", 404, "Request for unknown model: 'absent' is not found"),
        ("one", "{", 500, "failed to parse the request JSON buffer"),
        ("one", "{}", 400, "expected 1 inputs but got 0 inputs for model 'one'"),
        ("one", r#"{"INPUT0":"a"}"#, 500, "attempt to access JSON non-number as double"),
        ("one", &format!(r#"{one},"INPUT0":2}}"#), 400, "input 'INPUT0' already exists in request"),
        ("one", &format!(r#"{one},"stop":[]}}"#), 400, "parameter 'stop' has invalid type"),
        (
            "mixed",
            r#"{"whole":[1,2,3]}"#,
            400,
            "The schema can not convert input 'whole' to tensor with proper shape",
        ),
        ("one", &format!(r#"{one},"fail":"as it says"}}"#), 500, "as it says"),
    ] {
        let response = generate(model, json);
        assert_eq!(response.status, status, "{model} {json}: {}", response.text());
        assert!(response.error_text().contains(text), "{model} {json}: {}", response.text());
        assert_eq!(response.header("content-type"), Some("application/json"));
        if !text.contains("as it says") {
            let stream = generate_stream(model, json);
            assert_eq!((stream.status, stream.text()), (status, response.text()));
            assert_eq!(stream.header("content-type"), Some("application/json"));
        }
    }
    let encoded = [("Content-Encoding", "gzip")];
    let response = SERVER.post("/v2/models/one/generate", &encoded, "x");
    let why = "Unsupported content-encoding, only 'identity' is supported.";
    assert_eq!((response.status, response.error_text().as_str()), (400, why));
    assert_eq!(SERVER.get("/v2/models/one/generate").status, 405);
}

#[test]
fn generate_takes_exactly_one_response() {
    let why = "generate expects model to produce exactly 1 response, use generate stream for model that generates \
               various number of responses";
    for model in ["many", "isolated"] {
        let response = |n| generate(model, &format!(r#"{{"INPUT0":[1,2],"responses":{n}}}"#));
        assert_eq!(response(1).json()["OUTPUT0"], serde_json::json!([1.0, 2.0]));
        for n in [0, 2, 100] {
            let refused = response(n);
            assert_eq!((refused.status, refused.error_text().as_str()), (500, why), "{n}");
        }
    }
}

#[test]
fn each_response_is_an_event() {
    for model in ["many", "isolated"] {
        let response = generate_stream(model, r#"{"INPUT0":[1,2],"responses":3,"id":"a"}"#);
        let event = format!(
            "data: {{\"OUTPUT0\":[1.0,2.0],\"id\":\"a\",\"model_name\":\"{model}\",\"model_version\":\"1\"}}\n\n"
        );
        assert_eq!((response.status, response.text()), (200, event.repeat(3)));
        let kind = "text/event-stream; charset=utf-8";
        assert_eq!(response.header("content-type"), Some(kind));
        assert_eq!(response.header("transfer-encoding"), Some("chunked"));
        let none = generate_stream(model, r#"{"INPUT0":1,"responses":0}"#);
        assert_eq!((none.status, none.text().as_str()), (200, ""));
        // The first response decides the status, later errors are events.
        let first = generate_stream(model, r#"{"INPUT0":1,"fail":"no","fail_code":3}"#);
        assert_eq!(first.text(), "data: {\"error\":\"no\"}\n\n");
        assert_ne!(first.status, 200);
        let later =
            generate_stream(model, r#"{"INPUT0":1,"fail":"no","fail_last":true,"responses":2}"#);
        let text = later.text();
        assert_eq!(later.status, 200);
        let (event, error) = text.split_once("\n\n").unwrap_or_else(|| panic!("{text}"));
        assert!(event.starts_with("data: {\"OUTPUT0\":1.0,"), "{text}");
        assert_eq!(error, "data: {\"error\":\"no\"}\n\n");
    }
}

/// A connection serves further requests after a stream, and requests behind it.
#[test]
fn connection_is_kept_after_a_stream() {
    let mut connection = SERVER.connect();
    let path = "/v2/models/many/generate_stream";
    let stream = request("POST", path, &[], br#"{"INPUT0":1,"responses":2}"#);
    connection.send([stream.clone(), stream.clone()].concat());
    for _ in 0..2 {
        assert_eq!(connection.response().text().matches("data: ").count(), 2);
    }
    connection.send(request("GET", "/v2/health/ready", &[], b""));
    assert_eq!(connection.response().status, 200);
}

#[test]
fn sequence_parameters_select_a_sequence() {
    let step = |value: i32, more: &str| {
        let json = format!(r#"{{"INPUT0":{value},"sequence_id":"s"{more}}}"#);
        generate("sums", &json).json()["OUTPUT0"].clone()
    };
    assert_eq!(step(5, r#","sequence_start":true"#), 5);
    assert_eq!(step(2, ""), 7);
    assert_eq!(step(1, r#","parameters":{"sequence_end":true}"#), 8);
    let refused = generate("sums", r#"{"INPUT0":1,"sequence_id":"s"}"#);
    assert!(refused.error_text().contains("must specify the START flag"), "{}", refused.text());
}

fn cancelled(server: &Running, model: &str) -> f64 {
    let labels = format!(r#"model="{model}",version="1",when="executing""#);
    server.metrics(&format!("trtserver_request_cancelled_total{{{labels}}}")).unwrap_or(-1.0)
}

/// Begins a stream of one event, after which the model waits to be cancelled.
fn waiting_stream(server: &Running, model: &str) -> Connection {
    let mut connection = server.connect();
    let path = format!("/v2/models/{model}/generate_stream");
    let json = br#"{"INPUT0":1,"responses":1,"until_cancelled":true}"#;
    connection.send(request("POST", &path, &[], json));
    assert_eq!(connection.head().status, 200);
    assert!(connection.chunk().starts_with(b"data: {\"OUTPUT0\":1.0,"));
    connection
}

#[test]
fn disconnect_cancels_a_stream() {
    for model in ["many", "isolated"] {
        let before = cancelled(&SERVER, model);
        drop(waiting_stream(&SERVER, model));
        SERVER.poll_until("the request is cancelled", |s| cancelled(s, model) == before + 1.0);
    }
}

/// A client that closes its sending side only is sent comments, and cancels its request when it
/// closes the connection.
#[test]
fn half_closed_connection_keeps_its_stream() {
    let server = Server::new().model("many", probe("many", &[]) + DECOUPLED).start();
    let mut connection = waiting_stream(&server, "many");
    connection.finish();
    for _ in 0..2 {
        assert_eq!(connection.chunk(), b":\n\n");
    }
    assert_eq!(cancelled(&server, "many"), 0.0);
    drop(connection);
    server.poll_until("the request is cancelled", |server| cancelled(server, "many") == 1.0);
    assert!(server.stop().success());
}

/// Events that the client does not read make the model wait.
#[test]
fn model_waits_for_the_client_of_a_stream() {
    let parameters = |isolation| [("responses", "150"), ("isolation", isolation)];
    let server = Server::new()
        .model("local", probe("local", &parameters("none")) + DECOUPLED)
        .model("isolated", probe("isolated", &parameters("process")) + DECOUPLED)
        .flag("--max-unread-per-stream=1M")
        .start();
    for model in ["local", "isolated"] {
        let mut connection = server.connect();
        let path = format!("/v2/models/{model}/generate_stream");
        // An event has 256 KiB of text, and all of them more than sockets hold.
        let json = format!(r#"{{"INPUT0":[{}1]}}"#, "1,".repeat((64 << 10) - 1));
        connection.send(request("POST", &path, &[], json.as_bytes()));
        assert_eq!(connection.head().status, 200);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let labels = format!(r#"nv_inference_request_success{{model="{model}",version="1"}}"#);
        assert_eq!(server.metrics(&labels), Some(0.0), "{model} does not wait");
        let events = std::iter::from_fn(|| Some(connection.chunk()).filter(|c| !c.is_empty()));
        let read = events.filter(|chunk| chunk.starts_with(b"data: ")).count();
        assert_eq!(read, 150, "{model}");
        assert_eq!(server.metrics(&labels), Some(1.0));
    }
    assert!(server.stop().success());
}

/// ORCA: the header of the response shows the KV cache as a backend for language models reports it.
#[test]
fn load_metrics_are_in_the_response_header() {
    let gauges =
        "nv_trt_llm_kv_cache_block_metrics kv_cache_block_type tokens_per=64 used=3 max=12";
    let server = Server::new().model("llm", probe("llm", &[("gauges", gauges)])).start();
    let text =
        "TEXT named_metrics.kv_cache_utilization=0.250000, named_metrics.max_token_capacity=768";
    let json = r#"JSON {"named_metrics":{"kv_cache_utilization":0.25,"max_token_capacity":768}}"#;
    let header = |server: &Running, endpoint: &str, format: &str| {
        let headers = [("endpoint-load-metrics-format", format)];
        let path = format!("/v2/models/llm/{endpoint}");
        let response = server.post(&path, &headers, r#"{"INPUT0":[1,2]}"#);
        assert_eq!(response.status, 200, "{}", response.text());
        response.header("endpoint-load-metrics").map(str::to_owned)
    };
    for endpoint in ["generate", "generate_stream"] {
        for (format, expected) in [("text", Some(text)), ("json", Some(json)), ("xml", None)] {
            assert_eq!(header(&server, endpoint, format).as_deref(), expected, "{endpoint}");
        }
    }
    assert!(server.stop().success());
    // Without the metrics the header has what every response may have.
    let server = Server::new().model("llm", probe("llm", &[])).start();
    let report = header(&server, "generate", "text").unwrap_or_default();
    assert!(report.starts_with("TEXT application_utilization="), "{report}");
    assert!(server.stop().success());
}
