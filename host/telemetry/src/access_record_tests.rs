//! Unit tests of `access_record.rs`.

use super::*;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

fn record() -> AccessRecord {
    AccessRecord {
        time: UNIX_EPOCH + Duration::from_micros(1_795_752_000_000_123),
        wire: "http",
        method: Method::GET,
        uri: Uri::from_static("http://h/v2/health/live?x=1"),
        peer: "127.0.0.1:9".into(),
        caller: None,
        request_id: None,
        trace_id: None,
        inference: None,
        status: Some(200),
        disconnected: false,
        bytes: Some(BodyBytes { received: 0, sent: 2 }),
        total_us: 7,
        error: None,
    }
}

fn line(record: &AccessRecord) -> Value {
    let mut line = Vec::new();
    record.write_line(&mut line);
    let end = line.iter().position(|byte| *byte == b'\n');
    assert_eq!(end, Some(line.len() - 1), "one line");
    serde_json::from_slice(&line).unwrap()
}

#[test]
fn fields_that_are_not_known_are_left_out() {
    let expected = json!({
        "time": "2026-11-27T04:00:00.000123Z", "peer": "127.0.0.1:9", "wire": "http",
        "method": "GET", "path": "/v2/health/live", "total_us": 7, "bytes_in": 0, "bytes_out": 2,
        "status": 200,
    });
    assert_eq!(line(&record()), expected);
}

#[test]
fn an_inference_over_grpc() {
    let execution = Some(ExecutionFacts { rows: 8, queue_us: 3, compute_us: 4 });
    let id = "say \"hi\"\n\u{1}".to_owned();
    let record = AccessRecord {
        wire: "grpc",
        uri: Uri::from_static("/inference.GRPCInferenceService/ModelInfer"),
        caller: Some("team-a".into()),
        request_id: Some(HeaderValue::from_bytes(b"r\xff").unwrap()),
        trace_id: TraceId::from_hex(b"0af7651916cd43dd8448eb211c80319c"),
        inference: Some(InferenceFacts {
            id,
            model: "m".to_owned(),
            version: -1,
            batch: 2,
            execution,
        }),
        status: None,
        disconnected: true,
        bytes: None,
        error: Some("canceled".to_owned()),
        ..record()
    };
    let expected = json!({
        "time": "2026-11-27T04:00:00.000123Z", "peer": "127.0.0.1:9", "wire": "grpc",
        "rpc": "inference.GRPCInferenceService/ModelInfer", "caller": "team-a",
        "request_id": "r\u{fffd}", "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "id": "say \"hi\"\n\u{1}", "model": "m", "version": -1, "batch_size": 2,
        "executed_batch_size": 8, "queue_us": 3, "compute_us": 4, "total_us": 7,
        "disconnected": true, "error": "canceled",
    });
    assert_eq!(line(&record), expected);
}
