//! Spans of OpenTelemetry: what a collector gets, over HTTP and gRPC, and what a bad collector does
//! to the server: nothing.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what these tests cannot do is a failure"
)]

mod collectors;
mod contexts;
mod load;

use std::collections::BTreeMap;
use trtserver_tests::isolated::isolated;
use trtserver_tests::otlp_sink::{OtlpSink, Span};
use trtserver_tests::{Server, probe};

/// A server whose spans go to a collector at once; every request is sampled if it says `rate=1`.
fn server(address: &str, flags: &[&str]) -> Server {
    let url = format!("--trace-config=opentelemetry,url=http://{address}/v1/traces");
    let server = Server::new()
        .flag("--trace-config=mode=opentelemetry")
        .flag("--trace-config=level=TIMESTAMPS")
        .flag("--trace-config=opentelemetry,bsp_schedule_delay=50")
        .flag(url);
    flags.iter().fold(server, |server, flag| server.flag(*flag))
}

/// The models `echo`, `isolated`, and `pair`: an ensemble of both.
fn with_models(server: Server) -> Server {
    let step = |model: &str, from: &str, to: &str| {
        format!(
            "step {{ model_name: '{model}' model_version: -1 input_map {{ key: 'INPUT0' value: '{from}' }} \
             output_map {{ key: 'OUTPUT0' value: '{to}' }} }}\n"
        )
    };
    let tensor = |side: &str, name: &str| {
        format!("{side} {{ name: '{name}' data_type: TYPE_FP32 dims: [ -1 ] }}\n")
    };
    let pair = format!(
        "name: 'pair'\nplatform: 'ensemble'\nmax_batch_size: 8\n{}{}ensemble_scheduling {{\n{}{}}}\n",
        tensor("input", "INPUT0"),
        tensor("output", "OUTPUT0"),
        step("echo", "INPUT0", "middle"),
        step("isolated", "middle", "OUTPUT0"),
    );
    server
        .model("echo", probe("echo", &[]))
        .model("isolated", isolated("isolated", &[]))
        .model("pair", pair)
}

/// Waits until the collector has this many traces, and returns their spans by trace.
#[track_caller]
fn wait_for_traces(
    server: &trtserver_tests::Running,
    sink: &OtlpSink,
    count: usize,
) -> BTreeMap<Vec<u8>, Vec<Span>> {
    let roots = || sink.spans_named("InferRequest");
    server.poll_until(&format!("{count} traces"), |_| roots() >= count);
    let mut traces = BTreeMap::<_, Vec<_>>::new();
    for span in sink.spans() {
        traces.entry(span.trace_id.clone()).or_default().push(span);
    }
    traces
}

/// `NAME`, or `NAME < PARENT`, for each span, sorted.
fn tree(spans: &[Span]) -> Vec<String> {
    let line = |span: &Span| {
        let parent = spans.iter().find(|other| other.span_id == span.parent_span_id);
        parent
            .map_or_else(|| span.name.clone(), |parent| format!("{} < {}", span.name, parent.name))
    };
    let mut lines: Vec<_> = spans.iter().map(line).collect();
    lines.sort();
    lines
}
