//! Load reports of ORCA: headers of responses over HTTP, trailers and a stream over gRPC, and the
//! metrics with the same values.
#![allow(clippy::expect_used, reason = "what these tests cannot do is a failure")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, Request};
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use trtserver_proto::load_report::OrcaLoadReport;
use trtserver_tests::grpc::{INFER, STREAM, infer_v1, infer_v2};
use trtserver_tests::http1::request;
use trtserver_tests::http2::message;
use trtserver_tests::{Running, Server, probe, python_v2};

const FORMAT: &str = "endpoint-load-metrics-format";
const V2_BODY: &str =
    r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
const V1_HEADER: &str =
    r#"batch_size: 1 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;

fn start(flag: &str) -> Running {
    Server::new().model("slow", probe("slow", &[("delay_ms", "20")])).flag(flag).start()
}

/// The report of a response over HTTP to a request that asks for this format.
fn report(server: &Running, path: &str, format: Option<&str>) -> Option<String> {
    let mut headers = vec![("NV-InferRequest", V1_HEADER)];
    headers.extend(format.map(|format| (FORMAT, format)));
    let body = if path.starts_with("/v2") { V2_BODY } else { "12345678" };
    let response = server.post(path, &headers, body);
    assert!([200, 400, 404].contains(&response.status), "{path}: {}", response.text());
    ["", "-bin"].iter().find_map(|suffix| {
        response.header(&format!("endpoint-load-metrics{suffix}")).map(str::to_owned)
    })
}

#[test]
fn responses_have_the_report_that_the_request_asks_for() {
    let paths = [
        "/v2/models/slow/infer",
        "/v2/models/slow/versions/1/infer",
        "/v2/models/slow/generate",
        "/v2/models/missing/infer",
        "/api/infer/slow",
        "/api/infer/missing",
    ];
    for (flag, unasked) in [
        ("--load-reports=asked", false),
        ("--load-reports=always", true),
        ("--load-reports=off", false),
    ] {
        let server = start(flag);
        let is_off = flag.ends_with("off");
        for path in paths {
            for (format, prefix) in [("text", "TEXT a"), ("json", "JSON {"), ("bin", "")] {
                let found = report(&server, path, Some(format));
                let starts = found.as_ref().map(|found| found.starts_with(prefix));
                assert_eq!(starts, (!is_off).then_some(true), "{flag} {path} {format}: {found:?}");
            }
            let found = report(&server, path, None);
            let starts = found.as_ref().map(|found| found.starts_with("TEXT a"));
            assert_eq!(starts, unasked.then_some(true), "{flag} {path}: {found:?}");
        }
        // Other requests have none.
        let other = request("GET", "/v2/models/slow", &[(FORMAT, "text")], b"");
        assert_eq!(server.send(other).header("endpoint-load-metrics"), None);
        assert!(server.stop().success());
    }
}

#[test]
fn trailers_and_streams_have_reports() {
    for (flag, case) in [
        ("--load-reports=asked", "Asked"),
        ("--load-reports=always", "Always"),
        ("--load-reports=off", "Off"),
    ] {
        python_v2(&start(flag), "v2_load_reports.py", &["-k", case]);
    }
}

/// The trailers of a gRPC call, and what its body has. A call without a body has its trailers in its
/// headers.
pub async fn end_of_call(
    address: &str,
    path: &str,
    message: Vec<u8>,
    format: Option<&str>,
) -> (HeaderMap, Bytes) {
    let socket = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) = h2::client::handshake(socket).await.expect("HTTP/2");
    tokio::spawn(connection);
    let mut call = Request::post(format!("http://{address}{path}"))
        .header("te", "trailers")
        .header("content-type", "application/grpc");
    if let Some(format) = format {
        call = call.header(FORMAT, format);
    }
    let call = call.body(()).expect("a request");
    let (response, mut body) = sender.send_request(call, false).expect("a stream");
    body.send_data(Bytes::from(message), true).expect("a message");
    let (head, mut response) = response.await.expect("a response").into_parts();
    let mut received = Vec::new();
    while let Some(data) = response.data().await {
        let data = data.expect("a message");
        response.flow_control().release_capacity(data.len()).expect("a window");
        received.extend_from_slice(&data);
    }
    let trailers = response.trailers().await.expect("the end").unwrap_or(head.headers);
    (trailers, received.into())
}

#[test]
fn trailers_have_binary_reports() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    for (flag, unasked) in [("--load-reports=asked", false), ("--load-reports=always", true)] {
        let server = start(flag);
        let calls = [
            (INFER[0], message(&infer_v2("slow", [1.0, 2.0]))),
            (INFER[1], message(&infer_v1("slow", [1.0, 2.0]))),
            (STREAM[0], message(&infer_v2("slow", [1.0, 2.0]))),
            (STREAM[1], message(&infer_v1("slow", [1.0, 2.0]))),
        ];
        for (path, message) in calls {
            for (asks, expected) in [(true, true), (false, unasked)] {
                let format = asks.then_some("bin");
                let call = end_of_call(server.grpc(), path, message.clone(), format);
                let (found, _) = runtime.block_on(call);
                let report = found.get("endpoint-load-metrics-bin");
                assert_eq!(report.is_some(), expected, "{flag} {path} {asks}: {found:?}");
                let Some(report) = report else { continue };
                let bytes = STANDARD_NO_PAD.decode(report).expect("base64");
                let report = OrcaLoadReport::decode(bytes.as_slice()).expect("a report");
                assert!(report.utilization.contains_key("model.slow"), "{report:?}");
            }
        }
    }
}

#[test]
fn metrics_show_the_utilization() {
    let server = start("--queue-wait-target-ms=10");
    for (gauge, expected) in
        [("trtserver_application_utilization_ratio", 0.0), ("trtserver_draining", 0.0)]
    {
        assert_eq!(server.metrics(gauge), Some(expected), "{gauge}");
    }
}
