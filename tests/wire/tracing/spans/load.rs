//! A mixed load, of which every span arrives, with the right parent.

use super::{server, tree, wait_for_traces, with_models};
use trtserver_tests::otlp_sink::{OtlpSink, SinkMode, Span, attribute};
use trtserver_tests::{ENDPOINTS, Endpoint, InferenceClient, Running};

/// Requests of each kind on each connection.
const ROUNDS: usize = 16;
/// Requests in one write over HTTP.
const PIPELINED: usize = 50;

/// Sends requests of all kinds to all models. Returns how many of each model.
fn send_mixed(server: &Running) -> usize {
    let models = ["echo", "isolated", "pair"];
    std::thread::scope(|scope| {
        for model in models {
            scope.spawn(move || {
                for endpoint in [Endpoint::HttpV1, Endpoint::HttpV2] {
                    let requests = endpoint.bytes(model, [1.0, 2.0]).repeat(PIPELINED);
                    let mut connection = server.connect();
                    for _ in 0..ROUNDS {
                        connection.send(&requests);
                        assert!((0..PIPELINED).all(|_| connection.response().status == 200));
                    }
                }
            });
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    for endpoint in ENDPOINTS {
                        let client = InferenceClient::send(server, endpoint, model, [1.0, 2.0]);
                        assert!(client.is_echoed());
                    }
                }
            });
        }
    });
    2 * ROUNDS * PIPELINED + ENDPOINTS.len() * ROUNDS
}

/// Times and attributes of one trace.
fn check(spans: &[Span]) {
    let root = spans.iter().find(|span| span.parent_span_id.is_empty()).expect("a root");
    assert_eq!((root.name.as_str(), root.kind), ("InferRequest", 2), "a span of a server");
    for span in spans {
        let parent = spans.iter().find(|other| other.span_id == span.parent_span_id);
        let parent = parent.unwrap_or(root);
        assert!(span.start_time_unix_nano >= parent.start_time_unix_nano, "{span:?}\n{parent:?}");
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
        assert!(span.status.is_none(), "{span:?}");
        let names: Vec<_> = span.events.iter().map(|event| event.name.as_str()).collect();
        match span.name.as_str() {
            "InferRequest" => assert!(names.contains(&"INFER_RESPONSE_COMPLETE"), "{names:?}"),
            "compute" => assert_eq!(
                names,
                ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
            ),
            model => {
                assert!(names.starts_with(&["REQUEST_START"]), "{names:?}");
                assert!(names.ends_with(&["REQUEST_END"]), "{names:?}");
                assert_eq!(attribute(span, "triton.model_name").as_deref(), Some(model));
                assert_eq!(attribute(span, "triton.model_version").as_deref(), Some("1"));
            }
        }
    }
}

#[test]
fn every_span_of_a_mixed_load_arrives_with_its_parent() {
    // The second one compressed.
    for (protocol, compression) in [("http/protobuf", "none"), ("grpc", "gzip")] {
        let sink = OtlpSink::start(SinkMode::Accept);
        let flags = [
            "--trace-config=rate=1",
            "--trace-config=opentelemetry,bsp_max_queue_size=100000",
            "--trace-config=opentelemetry,resource=service.name=under-test",
            &format!("--trace-config=opentelemetry,protocol={protocol}"),
        ];
        let server = with_models(server(&sink.address, &flags))
            .env("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
            .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=se%20cret")
            .start();
        let each = send_mixed(&server);
        let traces = wait_for_traces(&server, &sink, 3 * each);
        assert_eq!(traces.len(), 3 * each);
        let mut counts = [0; 3];
        for spans in traces.values() {
            let tree = tree(spans);
            let kind = match &tree.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["InferRequest", "compute < echo", "echo < InferRequest"] => 0,
                ["InferRequest", "compute < isolated", "isolated < InferRequest"] => 1,
                [
                    "InferRequest",
                    "compute < echo",
                    "compute < isolated",
                    "echo < pair",
                    "isolated < pair",
                    "pair < InferRequest",
                ] => 2,
                _ => panic!("{tree:?}"),
            };
            counts[kind] += 1;
            check(spans);
        }
        assert_eq!(counts, [each; 3]);
        let exported = server.metrics("trtserver_spans_exported_total");
        assert_eq!(exported, Some((each * (3 + 3 + 6)) as f64));
        for reason in ["queue_full", "export_failed", "rejected", "shutdown"] {
            let sample = format!(r#"trtserver_spans_dropped_total{{reason="{reason}"}}"#);
            assert_eq!(server.metrics(&sample), Some(0.0), "{reason}");
        }
        assert_eq!(sink.resource()["service.name"], "under-test");
        let headers = sink.request_headers();
        assert!(headers.iter().all(|headers| headers["api-key"] == "se cret"));
        assert!(server.stop().success());
    }
}
