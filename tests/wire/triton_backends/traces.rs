//! Traces of requests that Triton backends execute, isolated and in the server: the points that
//! they add, and the context that they get.

use trtserver_tests::otlp_sink::{OtlpSink, SinkMode, Span};
use trtserver_tests::triton_backends::rogues;
use trtserver_tests::{Running, Server, folder};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const STATE: &str = r#"vendor=a"b"#;

const CONFIG: &str = "backend: \"mine\"\nmax_batch_size: 0\n\
    input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
    output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n";

/// Has the backend execute a command: the id of the request.
fn command(server: &Running, headers: &[(&str, &str)], command: &str) -> (u16, String) {
    let body = format!(
        r#"{{"id":"{command}","inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1],"data":[1]}}]}}"#
    );
    let response = server.post("/v2/models/m/infer", headers, &body);
    (response.status, response.text())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The span of the model with this id, once the collector has it.
fn model_span(server: &Running, sink: &OtlpSink) -> Span {
    let find = || sink.spans().into_iter().find(|span| span.name == "m");
    server.poll_until("the span of the model", |_| find().is_some());
    find().unwrap_or_else(|| panic!("no span of the model"))
}

#[test]
fn backends_add_points_to_spans_and_get_the_context() {
    let made = rogues(&["mine"]);
    for isolation in ["process", "none"] {
        let sink = OtlpSink::start(SinkMode::Accept);
        let server = Server::new()
            .triton_start_line()
            .backend_dir(trtserver_tests::backends())
            .backend_dir(made.path())
            .model("m", CONFIG)
            .flag(format!("--backend-config=mine,isolation={isolation}"))
            .flag("--trace-config=mode=opentelemetry")
            .flag("--trace-config=level=TIMESTAMPS")
            .flag("--trace-config=rate=1000000")
            .flag(format!("--trace-config=opentelemetry,url=http://{}/v1/traces", sink.address))
            .flag("--trace-config=opentelemetry,bsp_schedule_delay=50")
            .start();
        // A request without a trace.
        let (status, text) = command(&server, &[], "trace");
        assert_eq!(status, 200, "{isolation}: {text}");
        server.wait_for_log("rogue: context ''");
        let headers = [("traceparent", PARENT), ("tracestate", STATE)];
        let (status, text) = command(&server, &headers, "trace");
        assert_eq!(status, 200, "{isolation}: {text}");
        let span = model_span(&server, &sink);
        let names: Vec<_> = span.events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["REQUEST_START", "QUEUE_START", "ROGUE_POINT", "REQUEST_END"]);
        assert!(span.events.is_sorted_by_key(|event| event.time_unix_nano), "{span:?}");
        let own = format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id));
        assert_eq!(own[..36], PARENT[..36], "{isolation}");
        // A child's lines come with escapes.
        let line = server.wait_for_log(&own).replace(r#"\\\""#, "'").replace(r#"\""#, "\"");
        let end = line.split("rogue: context '").nth(1).unwrap_or_else(|| panic!("{line}"));
        let end = end.replace(r#"a"b"#, "a'b");
        let json = format!(r#"{{"traceparent":"{own}","tracestate":"vendor=a'b"}}'"#);
        assert!(end.starts_with(&json), "{isolation}: {line}");
        // The trace ends with its request.
        let (status, text) = command(&server, &headers, "trace_after_release");
        assert!(status >= 400 && text.contains("was freed"), "{isolation}: {status} {text}");
        assert!(server.stop().success(), "{isolation}");
    }
}

#[test]
fn trace_files_have_the_points_of_backends() {
    let (made, dir) = (rogues(&["mine"]), folder());
    let file = dir.path().join("trace.json");
    let server = Server::new()
        .triton_start_line()
        .backend_dir(trtserver_tests::backends())
        .backend_dir(made.path())
        .model("m", CONFIG)
        .flag(format!("--trace-config=triton,file={}", file.display()))
        .flag("--trace-config=level=TIMESTAMPS")
        .flag("--trace-config=rate=1")
        .start();
    assert_eq!(command(&server, &[], "trace").0, 200);
    assert!(server.stop().success());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
    assert_eq!(text.matches(r#""name":"ROGUE_POINT""#).count(), 1, "{text}");
}
