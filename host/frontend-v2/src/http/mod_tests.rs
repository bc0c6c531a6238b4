//! Requests to v2 over HTTP, against models served by threads.

use super::*;
use http_body_util::{BodyExt, Full};
use trtserver_request::shared_memory::testing::Object;
use trtserver_wire::echo_testing::{context, context_with};
use trtserver_wire::regions::SHARED_MEMORY_DISABLED;

const LENGTH: &str = "inference-header-content-length";

struct Received {
    status: u16,
    headers: http::HeaderMap,
    body: Vec<u8>,
}

async fn call(
    ctx: &Arc<FrontendContext>,
    line: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Received {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
    let (head, body) =
        handle_request(ctx, request, trtserver_base::clock::now_ns()).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Received { status: head.status.as_u16(), headers: head.headers, body }
}

async fn text(ctx: &Arc<FrontendContext>, line: &str, body: &str) -> (u16, String) {
    let got = call(ctx, line, &[], body.as_bytes()).await;
    (got.status, String::from_utf8(got.body).unwrap())
}

#[tokio::test]
async fn metadata_endpoints() {
    let ctx = context();
    let error = |text: &str| format!("{{\"error\":\"{text}\"}}");
    let meta = r#"[{"name":"FP","datatype":"FP32","shape":[-1,-1]},{"name":"TEXT","datatype":"BYTES","shape":[-1,-1]}]"#;
    let table = [
        ("GET /v2/health/live", 200, String::new()),
        ("GET /v2/health/ready", 200, String::new()),
        ("GET /v2/models", 200, r#"{"models":["broken","echo","none","silent","stream","stuck","twice"]}"#.into()),
        ("GET /v2/trtserver/health/started", 200, r#"{"started":true}"#.into()),
        ("GET /v2/", 404, error("Not Found")),
        ("POST /v2", 405, error("Method Not Allowed")),
        ("GET /v2/models/echo/ready", 200, String::new()),
        (
            "GET /v2/models/echo/versions/2/ready",
            400,
            r#"{"error":"Model version not ready","name":"echo","ready":false,"reason":"Request for unknown model: 'echo' version 2 is not found"}"#.into(),
        ),
        (
            "GET /v2/models/absent/ready",
            400,
            r#"{"error":"Model version not ready","name":"absent","ready":false,"reason":"Request for unknown model: 'absent' is not found"}"#.into(),
        ),
        (
            "GET /v2/models/echo",
            200,
            format!(
                r#"{{"name":"echo","versions":["1","3"],"platform":"closure","inputs":{meta},"outputs":{meta}}}"#
            ),
        ),
        (
            "GET /v2/models/absent",
            404,
            error("Request for unknown model: 'absent' is not found"),
        ),
        (
            "GET /v2/models/echo/versions/2/config",
            404,
            error("Request for unknown model: 'echo' version 2 is not found"),
        ),
        ("GET /v2/models/absent/stats", 400, error("requested model 'absent' is not available")),
        ("GET /v2/systemsharedmemory/status", 200, "[]".into()),
        (
            "GET /v2/cudasharedmemory/region/r/status",
            404,
            error("Unable to find cuda shared memory region: 'r'"),
        ),
        ("POST /v2/systemsharedmemory/unregister", 501, error(SHARED_MEMORY_DISABLED)),
        ("POST /v2/systemsharedmemory/region/r/register", 501, error(SHARED_MEMORY_DISABLED)),
        ("GET /v2/systemsharedmemory/register", 405, error("Method Not Allowed")),
        ("POST /v2/models/absent/generate", 404, error("Request for unknown model: 'absent' is not found")),
        (
            "POST /v2/models/echo/generate",
            500,
            error("failed to parse the request JSON buffer: The document is empty. at 0"),
        ),
        (
            "GET /v2/models/echo/trace/setting",
            200,
            r#"{"trace_level":["OFF"],"trace_rate":"1000","trace_count":"-1","log_frequency":"0","trace_file":"","trace_mode":"triton"}"#.into(),
        ),
        ("GET /v2/models/absent/trace/setting", 400, error("Request for unknown model : absent")),
    ];
    for (line, status, body) in table {
        assert_eq!(text(&ctx, line, "").await, (status, body), "{line}");
    }
    for (line, body) in [
        ("GET /v2/health/live", r#"{"live":true}"#),
        ("GET /v2/health/ready", r#"{"ready":true}"#),
        ("GET /v2/models/echo/ready", r#"{"name":"echo","ready":true}"#),
    ] {
        let got = call(&ctx, line, &[("accept", "application/json")], b"").await;
        assert_eq!((got.status, &*got.body), (200, body.as_bytes()), "{line}");
        assert_eq!(got.headers["content-type"], "application/json", "{line}");
    }
    let (_, index) = text(&ctx, "POST /v2/repository/index", r#"{"ready":true}"#).await;
    assert!(index.contains(r#"{"name":"echo","version":"3","state":"READY"}"#), "{index}");
    for (body, status) in [(r#"{"ready":1}"#, 400), ("[]", 200), ("null", 200), ("[", 500)] {
        assert_eq!(text(&ctx, "POST /v2/repository/index", body).await.0, status, "{body}");
    }
    let named = text(&ctx, "POST /v2/repository/r/index", r#"{"ready":true}"#).await;
    assert_eq!(named, (501, error("'repository_name' specification is not supported")));
}

#[tokio::test]
async fn shared_memory_regions() {
    let ctx = context_with("--allow-client-shm=true");
    let object = Object::new(100);
    let key = &*object.key;
    let error = |text: &str| format!("{{\"error\":\"{text}\"}}");
    let body = |offset: &str, size: &str| {
        format!(r#"{{"key":"{key}","offset":{offset},"byte_size":{size}}}"#)
    };
    let system = |path: &str| format!("POST /v2/systemsharedmemory/{path}");
    let register = system("region/r/register");
    let unsigned = |field: &str| {
        error(&format!(
            "Unable to parse '{field}': attempt to access JSON non-unsigned-integer as unsigned-integer"
        ))
    };
    let absent =
        |field: &str| error(&format!("Shared memory register request has no '{field}' field"));
    let range = error("failed to register shared memory region 'r': invalid args");
    let empty = "failed to parse the request JSON buffer: The document is empty. at 0";
    let table = [
        (&*register, body("-1", "10"), 500, unsigned("offset")),
        (&register, body("0", "-1"), 500, unsigned("byte_size")),
        (&register, body("1.0", "1"), 500, unsigned("offset")),
        (&register, body("0", "18446744073709551616"), 500, unsigned("byte_size")),
        (&register, body("0", "\"1\""), 500, unsigned("byte_size")),
        (&register, "{}".into(), 400, absent("key")),
        (&register, r#"{"key":"/k"}"#.into(), 400, absent("byte_size")),
        (
            &register,
            r#"{"key":1,"byte_size":1}"#.into(),
            500,
            error("Unable to parse 'key': attempt to access JSON non-string as string"),
        ),
        (&register, String::new(), 500, error(empty)),
        (&register, "[]".into(), 400, absent("key")),
        (&register, body("0", "101"), 400, range.clone()),
        (&register, body("18446744073709551615", "18446744073709551615"), 400, range),
        (
            &system("register"),
            body("0", "1"),
            400,
            error("'region name' is necessary to register system shared memory region"),
        ),
        (&register, format!(r#"{{"key":"{key}","byte_size":100}}"#), 200, String::new()),
        (&register, body("0", "1"), 400, error("shared memory region 'r' already in manager")),
        (
            &system("region/x/register"),
            r#"{"key":"/trtserver-absent","byte_size":1}"#.into(),
            500,
            error("Unable to open shared memory region: '/trtserver-absent'"),
        ),
        (
            "POST /v2/cudasharedmemory/region/c/register",
            r#"{"raw_handle":{"b64":""},"device_id":0,"byte_size":1}"#.into(),
            400,
            error("failed to register CUDA shared memory region: 'c', GPUs not supported"),
        ),
        (
            "GET /v2/systemsharedmemory/region/r/status",
            String::new(),
            200,
            format!(r#"[{{"name":"r","key":"{key}","offset":0,"byte_size":100}}]"#),
        ),
        (
            "GET /v2/systemsharedmemory/region/s/status",
            String::new(),
            404,
            error("Unable to find system shared memory region: 's'"),
        ),
        ("GET /v2/cudasharedmemory/status", String::new(), 200, "[]".into()),
        (&system("region/s/unregister"), String::new(), 200, String::new()),
        ("POST /v2/cudasharedmemory/unregister", String::new(), 200, String::new()),
        (&system("region/r/unregister"), "ignored".into(), 200, String::new()),
        ("GET /v2/systemsharedmemory/status", String::new(), 200, "[]".into()),
    ];
    for (line, body, status, want) in table {
        assert_eq!(text(&ctx, line, &body).await, (status, want), "{line} {body}");
    }
    let metadata = text(&ctx, "GET /v2", "").await.1;
    assert!(
        metadata.contains(r#""model_configuration","system_shared_memory","binary_tensor_data""#)
    );
    let without = text(&context(), "GET /v2", "").await.1;
    assert!(!without.contains("shared_memory"), "{without}");
}

#[tokio::test]
async fn json_request_gets_json_response() {
    let ctx = context();
    let body = r#"{"id":"7","parameters":{"p":1},"inputs":[
        {"name":"TEXT","datatype":"BYTES","shape":[1,2],"data":["ü",""]},
        {"name":"FP","datatype":"FP32","shape":[1,3],"data":[0.1,NaN,2]}]}"#;
    let want = r#"{"id":"7","model_name":"echo","model_version":"3","parameters":{"p":1},"outputs":[{"name":"FP","datatype":"FP32","shape":[1,3],"data":[0.1,NaN,2.0]},{"name":"TEXT","datatype":"BYTES","shape":[1,2],"data":["ü",""]}]}"#;
    assert_eq!(text(&ctx, "POST /v2/models/echo/infer", body).await, (200, want.into()));
    let old = text(&ctx, "POST /v2/models/echo/versions/1/infer", body).await.1;
    assert!(old.contains(r#""model_version":"1""#));
    let (_, stats) = text(&ctx, "GET /v2/models/echo/versions/3/stats", "").await;
    assert!(stats.contains(r#""inference_count":1,"execution_count":1"#), "{stats}");
    assert_eq!(ctx.state.in_flight(), 0);
}

#[tokio::test]
async fn binary_request_gets_binary_response() {
    let ctx = context();
    let floats: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let json = r#"{"inputs":[{"name":"FP","datatype":"FP32","shape":[2,1],"parameters":{"binary_data_size":8}}],"outputs":[{"name":"FP","parameters":{"binary_data":true}}]}"#;
    let length = json.len().to_string();
    let line = "POST /v2/models/echo/infer";
    let headers = [(LENGTH, length.as_str())];
    let got = call(&ctx, line, &headers, &[json.as_bytes(), &floats].concat()).await;
    let head = r#"{"model_name":"echo","model_version":"3","outputs":[{"name":"FP","datatype":"FP32","shape":[2,1],"parameters":{"binary_data_size":8}}]}"#;
    assert_eq!(got.body, [head.as_bytes(), &floats].concat());
    assert_eq!(got.headers[LENGTH], head.len().to_string().as_str());
    assert_eq!(got.headers["content-type"], "application/octet-stream");

    // An empty binary section has a size, but there is no header with the length of the JSON.
    let json = json.replace("[2,1]", "[2,0]").replace(":8}", ":0}");
    let got = call(&ctx, line, &[], json.as_bytes()).await;
    assert!(got.body.ends_with(br#""parameters":{"binary_data_size":0}}]}"#));
    assert!(!got.headers.contains_key(LENGTH));
    assert_eq!(got.headers["content-type"], "application/json");

    let classes = r#"{"inputs":[{"name":"FP","datatype":"FP32","shape":[1,3],"data":[1,3,2]}],"outputs":[{"name":"FP","parameters":{"classification":2}}]}"#;
    let (_, body) = text(&ctx, line, classes).await;
    assert!(
        body.ends_with(
            r#"{"name":"FP","datatype":"BYTES","shape":[1,2],"data":["3.000000:1","2.000000:2"]}]}"#
        ),
        "{body}"
    );
}

#[tokio::test]
async fn compressed_request_and_response() {
    use std::io::{Read, Write};
    let ctx = context();
    let json = r#"{"inputs":[{"name":"FP","datatype":"FP32","shape":[1,1],"data":[7]}]}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gzip.write_all(json.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let line = "POST /v2/models/echo/infer";
    let headers = [("content-encoding", "gzip"), ("accept-encoding", "deflate")];
    let got = call(&ctx, line, &headers, &packed).await;
    assert_eq!(got.headers["content-encoding"], "deflate");
    let mut plain = String::new();
    flate2::read::ZlibDecoder::new(&got.body[..]).read_to_string(&mut plain).unwrap();
    assert!(plain.ends_with("\"data\":[7.0]}]}"));

    let refused = call(&ctx, line, &[("content-encoding", "br")], &packed).await;
    assert_eq!(refused.status, 501);
    assert_eq!(refused.headers["accept-encoding"], "gzip, deflate");
    assert_eq!(refused.body, br#"{"error":"Unsupported compression type"}"#);
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let ctx = context();
    let body = r#"{"inputs":[{"name":"FP","datatype":"FP32","shape":[1,1],"data":[7]}]}"#;
    let large = format!(r#"{{"inputs":[]{}}}"#, " ".repeat(100_000));
    let unknown = "Request for unknown model: 'absent' is not found";
    for (line, headers, body, status, message) in [
        ("absent", None, body, 404, unknown),
        ("broken", None, body, 500, "out of order"),
        ("twice", None, body, 500, "expected a single response, got 2"),
        ("silent", None, body, 500, "expected a single response, got 0"),
        (
            "stream",
            None,
            body,
            501,
            "HTTP end point doesn't support models with decoupled transaction policy",
        ),
        (
            "echo",
            Some("x"),
            body,
            400,
            "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 \
             inputs in 'echo' model configuration",
        ),
        (
            "echo",
            Some("1000"),
            body,
            400,
            "inference header size should be in range (0, 69), got: 1000",
        ),
        (
            "echo",
            Some("0"),
            body,
            400,
            "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 \
             inputs in 'echo' model configuration",
        ),
        (
            "echo",
            None,
            "",
            400,
            "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 \
             inputs in 'echo' model configuration",
        ),
        (
            "echo",
            None,
            large.as_str(),
            400,
            "request JSON size of 100013 bytes exceeds the maximum allowed input size of 100000 bytes. Use \
             --http-max-input-size to increase the limit.",
        ),
        (
            "echo",
            None,
            r#"{"inputs":[{"name":"FP","datatype":"FP32","shape":[5,1],"data":[7]}]}"#,
            500,
            "Failed to parse 'data' field: shape does not match true shape",
        ),
    ] {
        let headers: Vec<_> = headers.iter().map(|v| (LENGTH, *v)).collect();
        let line = format!("POST /v2/models/{line}/infer");
        let got = call(&ctx, &line, &headers, body.as_bytes()).await;
        let want = format!("{{\"error\":\"{message}\"}}");
        assert_eq!((got.status, String::from_utf8(got.body).unwrap()), (status, want), "{line}");
        // Errors in the body are sent as JSON, those before and after it as plain text.
        let inside = line.contains("/echo/").then_some("application/json");
        assert_eq!(got.headers["content-type"], inside.unwrap_or("text/plain"), "{line}");
    }
    ctx.state.set_phase(trtserver_base::state::ServerPhase::Exiting);
    assert_eq!(text(&ctx, "POST /v2/models/echo/infer", body).await.0, 503);
    let exiting = (503, r#"{"error":"Server exiting"}"#.to_owned());
    assert_eq!(text(&ctx, "GET /v2/health/ready", "").await, exiting);
}

#[tokio::test]
async fn client_disconnect_cancels_the_request() {
    let ctx = context();
    let body = r#"{"inputs":[{"name":"FP","datatype":"FP32","shape":[1,1],"data":[7]}]}"#;
    let waiting = call(&ctx, "POST /v2/models/stuck/infer", &[], body.as_bytes());
    let limit = std::time::Duration::from_millis(50);
    assert!(tokio::time::timeout(limit, waiting).await.is_err());
    assert_eq!(ctx.state.in_flight(), 0);
    // The model's only thread is free, which requires that the first request was cancelled.
    let served = ctx.models.find("stuck", None).unwrap();
    while served.stats.snapshot().inference_count == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// Futures are `Send`, because hyper's connections are tasks.
#[allow(dead_code)]
fn futures_can_move(
    ctx: &Arc<FrontendContext>,
    request: Request<trtserver_wire::request_body::RequestBody>,
) {
    fn check(_: impl Send) {}
    check(handle_request(ctx, request, 0));
}
