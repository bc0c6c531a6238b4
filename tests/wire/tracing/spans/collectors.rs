//! Collectors that stall, refuse and lie: requests do not notice, and every span is counted.

use super::server;
use std::net::TcpListener;
use std::time::Instant;
use trtserver_tests::otlp_sink::{OtlpSink, SinkMode};
use trtserver_tests::{Running, TIMEOUT, inference, probe};

/// Requests, each with three spans.
const REQUESTS: usize = 100;

fn dropped(server: &Running, reason: &str) -> f64 {
    let sample = format!(r#"trtserver_spans_dropped_total{{reason="{reason}"}}"#);
    server.metrics(&sample).expect("a metric")
}

fn failures(server: &Running, reason: &str) -> f64 {
    let sample = format!(r#"trtserver_span_export_failures_total{{reason="{reason}"}}"#);
    server.metrics(&sample).expect("a metric")
}

/// A server with little place in its queue and little patience.
fn start(address: &str, protocol: &str) -> Running {
    let flags = [
        "--trace-config=rate=1",
        "--trace-config=opentelemetry,bsp_max_queue_size=60",
        "--trace-config=opentelemetry,bsp_max_export_batch_size=30",
        &format!("--trace-config=opentelemetry,protocol={protocol}"),
    ];
    server(address, &flags)
        .model("echo", probe("echo", &[]))
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
        .env("OTEL_BSP_EXPORT_TIMEOUT", "400")
        .start()
}

#[test]
fn bad_collectors_cost_spans_and_nothing_else() {
    let closed =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    // What the collector does, and as what the failures are counted.
    let table = [
        (Some(SinkMode::Stall), "http/protobuf", "timeout", "export_failed"),
        (Some(SinkMode::Stall), "grpc", "timeout", "export_failed"),
        (Some(SinkMode::Refuse), "http/protobuf", "refused", "export_failed"),
        (Some(SinkMode::Refuse), "grpc", "refused", "export_failed"),
        (Some(SinkMode::Lie), "http/protobuf", "invalid_answer", "export_failed"),
        (Some(SinkMode::Lie), "grpc", "invalid_answer", "export_failed"),
        (None, "http/protobuf", "unreachable", "export_failed"),
    ];
    for (mode, protocol, failure, drop) in table {
        let sink = mode.map(OtlpSink::start);
        let address = sink.as_ref().map_or_else(|| closed.to_string(), |sink| sink.address.clone());
        let server = start(&address, protocol);
        let requests = inference("echo", "").repeat(REQUESTS);
        let mut connection = server.connect();
        let begin = Instant::now();
        connection.send(&requests);
        assert!((0..REQUESTS).all(|_| connection.response().status == 200), "{mode:?}");
        assert!(begin.elapsed() < TIMEOUT / 2, "{mode:?}: requests waited for the collector");
        let reasons = ["queue_full", "export_failed", "rejected"];
        server.poll_until(&format!("{mode:?} {protocol}: all spans are counted"), |server| {
            reasons.iter().map(|reason| dropped(server, reason)).sum::<f64>()
                == 3.0 * REQUESTS as f64
        });
        assert!(dropped(&server, drop) > 0.0, "{mode:?} {protocol}");
        assert!(failures(&server, failure) > 0.0, "{mode:?} {protocol}");
        assert_eq!(server.metrics("trtserver_spans_exported_total"), Some(0.0));
        server.wait_for_log("did not take spans");
        assert!(server.stop().success());
    }
}

#[test]
fn a_busy_collector_is_asked_again_and_rejected_spans_are_counted() {
    for protocol in ["http/protobuf", "grpc"] {
        let sink = OtlpSink::start(SinkMode::Busy(1));
        let server = start(&sink.address, protocol);
        assert_eq!(server.send(inference("echo", "")).status, 200);
        server.poll_until("the spans arrive", |_| sink.span_count() == 3);
        assert_eq!(failures(&server, "busy"), 1.0);
        sink.set_mode(SinkMode::RejectOne);
        assert_eq!(server.send(inference("echo", "")).status, 200);
        server.poll_until("one is rejected", |server| dropped(server, "rejected") == 1.0);
        assert_eq!(server.metrics("trtserver_spans_exported_total"), Some(5.0));
        assert!(server.stop().success());
    }
}

#[test]
fn values_that_cannot_be_used_are_named_at_the_start() {
    let table = [
        ("", "OTEL_EXPORTER_OTLP_TIMEOUT", "x"),
        ("", "OTEL_TRACES_SAMPLER", "sometimes"),
        ("", "OTEL_EXPORTER_OTLP_CERTIFICATE", "no-such-file"),
        ("--trace-config=opentelemetry,exporter=zipkin", "", ""),
        ("--trace-config=opentelemetry,bsp_max_queue_size=0", "", ""),
    ];
    for (flag, variable, value) in table {
        let mut server = server("127.0.0.1:9", &[]);
        if !flag.is_empty() {
            server = server.flag(flag);
        }
        if !variable.is_empty() {
            server = server.env(variable, value);
        }
        let ended = server.refuses_to_start();
        let subject = if flag.is_empty() { variable } else { flag };
        assert!(ended.stderr.contains(subject), "{subject}: {}", ended.stderr);
    }
}
