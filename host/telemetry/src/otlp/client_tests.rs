//! Unit tests of `client.rs`.

use super::*;
use crate::otlp::messages::ExportTracePartialSuccess;

fn partial(rejected_spans: i64) -> Vec<u8> {
    let error_message = "too old".to_owned();
    let partial_success = Some(ExportTracePartialSuccess { rejected_spans, error_message });
    ExportTraceServiceResponse { partial_success }.encode_to_vec()
}

/// What of an answer decides what follows.
fn verdict(answer: ExportAnswer) -> String {
    match answer {
        ExportAnswer::Accepted { rejected, .. } => format!("accepted, {rejected} rejected"),
        ExportAnswer::Retry { failure, after, .. } => format!("retry {} {after:?}", failure.name()),
        ExportAnswer::Failed { failure, .. } => format!("failed {}", failure.name()),
    }
}

#[test]
fn answers_over_http() {
    let table: [(u16, Option<&str>, Vec<u8>, &str); 11] = [
        (200, None, Vec::new(), "accepted, 0 rejected"),
        (200, None, partial(3), "accepted, 3 rejected"),
        (200, None, partial(-3), "accepted, 0 rejected"),
        (200, None, b"<html>not a collector".to_vec(), "failed invalid_answer"),
        (301, None, Vec::new(), "failed refused"),
        (400, None, b"\x08\x03".to_vec(), "failed refused"),
        (404, None, Vec::new(), "failed refused"),
        (500, None, Vec::new(), "failed refused"),
        (429, Some("7"), Vec::new(), "retry busy Some(7s)"),
        (503, Some("Fri, 27 Nov 2026 05:00:00 GMT"), Vec::new(), "retry busy None"),
        (502, None, Vec::new(), "retry busy None"),
    ];
    for (status, after, body, expected) in table {
        let mut headers = HeaderMap::new();
        if let Some(after) = after {
            headers.insert(RETRY_AFTER, after.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let answer = read_http_answer(status, &headers, &body);
        assert_eq!(verdict(answer), expected, "{status}");
    }
}

#[test]
fn answers_over_grpc() {
    let framed = |message: &[u8]| {
        let mut body = vec![0, 0, 0, 0, message.len() as u8];
        body.extend_from_slice(message);
        body
    };
    let table: [(u16, Option<&str>, Vec<u8>, &str); 12] = [
        (200, Some("0"), framed(&[]), "accepted, 0 rejected"),
        (200, Some("0"), framed(&partial(2)), "accepted, 2 rejected"),
        (200, Some("0"), Vec::new(), "failed invalid_answer"),
        (200, Some("0"), vec![0, 0, 0, 0, 9, 1], "failed invalid_answer"),
        (200, Some("0"), vec![0, 255, 255, 255, 255], "failed invalid_answer"),
        (200, Some("0"), vec![1, 0, 0, 0, 0], "failed invalid_answer"),
        (200, Some("14"), Vec::new(), "retry busy None"),
        (200, Some("8"), Vec::new(), "failed refused"),
        (200, Some("12"), Vec::new(), "failed refused"),
        (200, Some("lie"), Vec::new(), "failed invalid_answer"),
        (503, None, Vec::new(), "retry busy None"),
        (404, None, Vec::new(), "failed invalid_answer"),
    ];
    for (status, code, body, expected) in table {
        let mut headers = HeaderMap::new();
        if let Some(code) = code {
            headers.insert("grpc-status", code.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(verdict(read_grpc_answer(status, &headers, &body)), expected, "{code:?}");
    }
}

#[test]
fn texts_of_collectors_stay_one_short_line() {
    assert_eq!(shown(b"a\nb\x1b[31m\xff"), "a b [31m\u{fffd}");
    assert_eq!(shown(&[b'x'; 1000]).len(), MAX_TEXT);
}
