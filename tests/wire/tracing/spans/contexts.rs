//! Contexts of callers, over all four frontends, and which requests are exported.

use super::{server, tree, wait_for_traces, with_models};
use trtserver_tests::grpc::{INFER, infer_v1, infer_v2};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::otlp_sink::{OtlpSink, SinkMode, Span, attribute};
use trtserver_tests::{Endpoint, InferenceClient, Running, inference, probe};

const SPAN: &str = "b7ad6b7169203331";

/// Sends a request to `echo` over each frontend with a context; its trace ends with `last` and the
/// number of the frontend.
fn send_with_contexts(server: &Running, last: u8, flags: &str) {
    let parent = |number: u8| format!("00-{last:030x}{number:02x}-{SPAN}-{flags}");
    for (number, endpoint) in [(0, Endpoint::HttpV1), (1, Endpoint::HttpV2)] {
        let bytes = endpoint.bytes("echo", [1.0, 2.0]);
        let end = bytes.windows(2).position(|part| part == b"\r\n").expect("a request line") + 2;
        let headers = format!("traceparent: {}\r\ntracestate: vendor=1\r\n", parent(number));
        let request = [&bytes[..end], headers.as_bytes(), &bytes[end..]].concat();
        assert_eq!(server.send(request).status, 200);
    }
    let bodies = [infer_v2("echo", [1.0, 2.0]), infer_v1("echo", [1.0, 2.0])];
    for (number, (path, body)) in (2..).zip(INFER.into_iter().zip(bodies)) {
        let parent = parent(number);
        let mut headers = call_headers(path);
        headers.extend([("traceparent", parent.as_str()), ("tracestate", "vendor=1")]);
        let mut client = Client::open(server.grpc());
        let call = client.call(&headers);
        client.send(call, &message(&body), true);
        assert_eq!(client.end(call).status, Some(0));
    }
}

/// Last two bytes of the trace ids of callers.
fn callers(spans: &[Span]) -> Vec<(u8, u8)> {
    let roots = spans.iter().filter(|span| span.name == "InferRequest");
    let mut found: Vec<_> = roots
        .filter(|span| span.parent_span_id == hex(SPAN))
        .map(|span| {
            assert_eq!(span.trace_state, "vendor=1");
            (span.trace_id[14], span.trace_id[15])
        })
        .collect();
    found.sort();
    found
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

#[test]
fn callers_decide_unless_triton_rule_is_asked_for() {
    let sink = OtlpSink::start(SinkMode::Accept);
    // A rate that samples none by itself.
    let based = with_models(server(&sink.address, &["--trace-config=rate=1000000"])).start();
    send_with_contexts(&based, 1, "01");
    send_with_contexts(&based, 2, "00");
    wait_for_traces(&based, &sink, 4);
    assert!(based.stop().success());
    let all = |last| (0..4).map(move |number| (last, number));
    assert_eq!(callers(&sink.spans()), all(1).collect::<Vec<_>>(), "those of the caller alone");

    let sink = OtlpSink::start(SinkMode::Accept);
    let flags = ["--trace-config=rate=1000000", "--trace-config=opentelemetry,parent=always"];
    let always = with_models(server(&sink.address, &flags)).start();
    send_with_contexts(&always, 1, "01");
    send_with_contexts(&always, 2, "00");
    wait_for_traces(&always, &sink, 8);
    assert!(always.stop().success());
    assert_eq!(callers(&sink.spans()), all(1).chain(all(2)).collect::<Vec<_>>());
}

#[test]
fn the_sampler_of_the_environment_counts_unless_a_rate_is_given() {
    for (flags, exported) in [(&[][..], 3), (&["--trace-config=rate=1000000"], 0)] {
        let sink = OtlpSink::start(SinkMode::Accept);
        let server = with_models(server(&sink.address, flags))
            .env("OTEL_TRACES_SAMPLER", "parentbased_always_on")
            .start();
        for _ in 0..3 {
            assert_eq!(server.send(inference("echo", "")).status, 200);
        }
        assert!(server.stop().success());
        // The end of the server sends what waits.
        let spans = sink.spans();
        let roots = spans.iter().filter(|span| span.name == "InferRequest").count();
        assert_eq!(roots, exported, "{flags:?}");
    }
}

#[test]
fn failed_requests_are_exported_although_they_are_not_sampled() {
    let sink = OtlpSink::start(SinkMode::Accept);
    let flags = ["--trace-config=rate=1000000", "--trace-slow-ms=3600000"];
    let server = with_models(server(&sink.address, &flags)).start();
    assert!(InferenceClient::send(&server, Endpoint::GrpcV2, "echo", [1.0, 2.0]).is_echoed());
    let body = r#"{"id":"wrong","inputs":[]}"#;
    assert_eq!(server.post("/v2/models/echo/infer", &[], body).status, 400);
    let traces = wait_for_traces(&server, &sink, 1);
    assert!(server.stop().success());
    assert_eq!(sink.span_count(), 1, "the request did not reach its model");
    let root = &traces.values().next().expect("a trace")[0];
    assert_eq!(attribute(root, "trtserver.kept").as_deref(), Some("failed"));
    let status = root.status.as_ref().expect("a status");
    assert_eq!(status.code, 2, "an error");
    assert!(status.message.contains("input"), "{}", status.message);
}

#[test]
fn slow_requests_are_exported_although_they_are_not_sampled() {
    let sink = OtlpSink::start(SinkMode::Accept);
    let flags = ["--trace-config=rate=1000000", "--trace-slow-ms=10"];
    let server =
        server(&sink.address, &flags).model("waits", probe("waits", &[("delay_ms", "20")]));
    let server = server.start();
    for endpoint in [Endpoint::HttpV1, Endpoint::GrpcV2] {
        assert!(InferenceClient::send(&server, endpoint, "waits", [1.0, 2.0]).is_echoed());
    }
    let traces = wait_for_traces(&server, &sink, 2);
    assert!(server.stop().success());
    for spans in traces.values() {
        assert_eq!(tree(spans), ["InferRequest", "compute < waits", "waits < InferRequest"]);
        let root = spans.iter().find(|span| span.parent_span_id.is_empty()).expect("a root");
        assert_eq!(attribute(root, "trtserver.kept").as_deref(), Some("slow"));
        assert!(root.end_time_unix_nano - root.start_time_unix_nano >= 20_000_000, "{root:?}");
        assert!(spans.iter().all(|span| span.status.is_none()), "{spans:?}");
    }
}
