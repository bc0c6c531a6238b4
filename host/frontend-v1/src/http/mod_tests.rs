//! Requests to v1 over HTTP, with every header and byte of their responses.

use super::*;
use crate::testing;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use trtserver_base::state::ServerPhase;
use trtserver_proto::v1::{InferResponseHeader, ServerStatus};
use trtserver_request::shared_memory::testing::Object;

/// The parts of a response.
#[derive(Debug, PartialEq)]
struct Received {
    code: u16,
    status: Option<String>,
    response: Option<String>,
    content_type: Option<String>,
    body: Vec<u8>,
}

async fn call(
    ctx: &Arc<FrontendContext>,
    line: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Received {
    let (method, uri) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let response = handle_request(ctx, request, trtserver_base::clock::now_ns()).await;
    let header = |name| response.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
    let (status, response_header) = (header("NV-Status"), header("NV-InferResponse"));
    let content_type = header("content-type");
    Received {
        code: response.status().as_u16(),
        status,
        response: response_header,
        content_type,
        body: response.into_body().collect().await.unwrap().to_bytes().to_vec(),
    }
}

fn ok(id: u64) -> Option<String> {
    Some(format!("code: SUCCESS server_id: \"inference:0\" request_id: {id}"))
}

fn fail(code: &str, msg: &str, id: u64) -> Option<String> {
    let id = if id == 0 { String::new() } else { format!(" request_id: {id}") };
    Some(format!("code: {code} msg: \"{msg}\" server_id: \"inference:0\"{id}"))
}

const SIMPLE: &str = "batch_size: 1 input { name: \"INPUT0\" dims: 16 } input { name: \"INPUT1\" dims: 16 } \
                      output { name: \"OUTPUT1\" } output { name: \"OUTPUT0\" }";

fn tensors(a: i32, b: i32) -> Vec<u8> {
    [a, b].iter().flat_map(|v| v.to_le_bytes().repeat(16)).collect()
}

#[tokio::test]
async fn control_endpoints() {
    let ctx = testing::context("");
    let rows = [
        ("GET /api/health/live", 200, ok(1)),
        ("GET /api/health/ready", 200, ok(2)),
        ("GET /api/health", 400, fail("UNKNOWN", "unknown health mode \\'\\'", 3)),
        ("GET /api/health/foo", 400, None),
        ("POST /api/health/live", 405, None),
        ("GET /api/status", 200, ok(4)),
        ("GET /api/status/m?format=binary", 200, ok(5)),
        (
            "GET /api/status/x%20y",
            400,
            fail("INVALID_ARG", "no status available for unknown model \\'x%20y\\'", 6),
        ),
        ("PUT /api/status", 405, None),
        ("GET /api/profile?cmd=start", 400, fail("UNSUPPORTED", "Profile API not enabled", 7)),
        ("POST /api/profile", 405, None),
        (
            "POST /api/modelcontrol/load/m",
            400,
            fail(
                "UNAVAILABLE",
                "explicit model load / unload is not allowed if polling is enabled",
                8,
            ),
        ),
        ("GET /api/modelcontrol/load/m", 405, None),
        ("POST /api/sharedmemorycontrol/unregisterall?format=binary", 200, ok(9)),
        ("GET /api/sharedmemorycontrol/status", 200, ok(10)),
        ("POST /api/sharedmemorycontrol/status", 405, None),
        ("GET /api/repository/index", 200, ok(11)),
        ("GET /api/nothing", 400, None),
        ("GET /api/infer/simple", 405, None),
        ("POST /api/infer/simple/x", 400, None),
    ];
    for (line, code, status) in rows {
        let got = call(&ctx, line, &[], vec![]).await;
        assert_eq!((got.code, &got.status), (code, &status), "{line}");
        let has_body = code == 200 && (line.contains("/api/status") || line.contains("index"));
        assert_eq!(!got.body.is_empty(), has_body, "{line}");
    }
    let e = &ctx.endpoints;
    let counted =
        [&e.health, &e.status, &e.profile, &e.model_control, &e.shm_control, &e.repository];
    assert_eq!(counted.map(|s| s.get().count), [4, 4, 2, 2, 3, 1]);
    ctx.state.set_phase(ServerPhase::Initializing);
    let got = call(&ctx, "GET /api/health/ready", &[], vec![]).await;
    assert_eq!((got.code, got.status), (400, ok(12)));
    let got = call(&ctx, "GET /api/profile", &[], vec![]).await;
    assert_eq!(got.status, fail("UNAVAILABLE", "Server not ready", 0));
    ctx.state.set_phase(ServerPhase::Exiting);
    for line in ["GET /api/health/live", "GET /api/status", "GET /api/repository/index"] {
        let got = call(&ctx, line, &[], vec![]).await;
        assert_eq!((got.code, got.status), (400, fail("UNAVAILABLE", "Server exiting", 0)));
    }
}

#[tokio::test]
async fn shared_memory_regions() {
    let ctx = testing::context("");
    let object = Object::new(100);
    let key = object.key.trim_start_matches('/');
    let post = |path: String| format!("POST /api/sharedmemorycontrol/{path}?format=binary");
    let register = |offset, size| post(format!("register/n//{key}/{offset}/{size}"));
    let exists = "shared memory block \\'n\\' already in manager";
    let range = "failed to register shared memory region \\'n\\': invalid args";
    let cuda = "failed to register CUDA shared memory region: \\'n\\', GPUs not supported";
    let absent = "Unable to open shared memory region: \\'/trtserver-absent\\'";
    for (line, code, status) in [
        (register(1, 100), 400, fail("INVALID_ARG", range, 1)),
        (register(10, 90), 200, ok(2)),
        (register(10, 90), 400, fail("ALREADY_EXISTS", exists, 3)),
        (post("cudaregister/n/64/0".into()), 400, fail("INVALID_ARG", cuda, 4)),
        (post("register/x//trtserver-absent/0/1".into()), 400, fail("INTERNAL", absent, 5)),
        (post("register/x/absent/0/x".into()), 400, None),
    ] {
        let got = call(&ctx, &line, &[], vec![]).await;
        assert_eq!((got.code, got.status), (code, status), "{line}");
    }
    let text = call(&ctx, "GET /api/sharedmemorycontrol/status", &[], vec![]).await;
    let want = format!(
        "shared_memory_region {{\n  name: \"n\"\n  system_shared_memory {{\n    shared_memory_key: \"/{key}\"\n    offset: \
         10\n  }}\n  byte_size: 90\n}}\n"
    );
    assert_eq!(String::from_utf8(text.body).unwrap(), want);
    let status = "GET /api/sharedmemorycontrol/status?format=binary";
    let regions = |body: Vec<u8>| SharedMemoryStatus::decode(&*body).unwrap().shared_memory_region;
    assert_eq!(regions(call(&ctx, status, &[], vec![]).await.body).len(), 1);
    for path in ["unregister/unknown", "unregister/n"] {
        assert_eq!(call(&ctx, &post(path.into()), &[], vec![]).await.code, 200, "{path}");
    }
    assert!(regions(call(&ctx, status, &[], vec![]).await.body).is_empty());
    assert_eq!(call(&ctx, &register(0, 1), &[], vec![]).await.code, 200);
    assert_eq!(call(&ctx, &post("unregisterall".into()), &[], vec![]).await.code, 200);
    assert!(regions(call(&ctx, status, &[], vec![]).await.body).is_empty());
    assert_eq!(ctx.endpoints.shm_control.get().count, 13);
}

#[tokio::test]
async fn status_formats() {
    let ctx = testing::context("");
    let json = ("Accept", "application/json");
    for (line, headers, content_type, begin) in [
        ("GET /api/status/m", &[][..], "text/html; charset=ISO-8859-1", "id: \"inference:0\"\n"),
        ("GET /api/status/m?format=text", &[json], "text/html; charset=ISO-8859-1", "id: "),
        ("GET /api/status/m", &[json], "application/json", "{\"id\":\"inference:0\""),
        ("GET /api/status/m?format=json", &[], "application/json", "{\"id\":"),
        ("GET /api/status/m?format=binary", &[json], "application/octet-stream", "\n\x0b"),
    ] {
        let got = call(&ctx, line, headers, vec![]).await;
        assert_eq!(got.content_type.as_deref(), Some(content_type), "{line}");
        assert!(got.body.starts_with(begin.as_bytes()), "{line}: {:?}", got.body);
    }
    let got = call(&ctx, "GET /api/status?format=binary", &[], vec![]).await;
    let status = ServerStatus::decode(got.body.as_slice()).unwrap();
    assert_eq!(status.model_status.len(), 3);
    assert_eq!(status.status_stats.unwrap().success.unwrap().count, 5);
}

#[tokio::test]
async fn inference_responds_with_header_body_and_trailer() {
    let ctx = testing::context("");
    let want = "model_name: \"simple\" model_version: 1 batch_size: 1 output { name: \"OUTPUT1\" raw { dims: 16 \
                batch_byte_size: 64 } } output { name: \"OUTPUT0\" raw { dims: 16 batch_byte_size: 64 } }";
    let header = [("NV-InferRequest", SIMPLE)];
    let got = call(&ctx, "POST /api/infer/simple?format=binary", &header, tensors(5, 3)).await;
    assert_eq!((got.code, &got.status, got.response.as_deref()), (200, &ok(1), Some(want)));
    assert_eq!(got.content_type.as_deref(), Some("application/octet-stream"));
    assert_eq!(got.body[..128], tensors(2, 8));
    let trailer = InferResponseHeader::decode(&got.body[128..]).unwrap();
    assert_eq!(text::print_line(&trailer), want);

    let with_id = format!("{SIMPLE} id: 77");
    let header = [("nv-inferrequest", &*with_id)];
    let got = call(&ctx, "POST /api/infer/simple/0", &header, tensors(5, 3)).await;
    assert_eq!(
        got.response,
        Some(
            format!("{} id: 77", want.replace("version: 1", "version: 0"))
                .replace("model_version: 0 ", "")
        )
    );
    let trailer: InferResponseHeader =
        text::parse(std::str::from_utf8(&got.body[128..]).unwrap()).unwrap();
    assert_eq!((trailer.id, trailer.output.len()), (77, 2));
    let counters = ctx.models.find("simple", Some(0)).unwrap().stats.snapshot();
    assert_eq!((counters.inference_count, counters.total().success.count), (1, 1));
}

#[tokio::test]
async fn classes_are_in_the_trailer_only() {
    let ctx = testing::context("");
    let request = "batch_size: 1 input { name: \"INPUT0\" } input { name: \"INPUT1\" } output { name: \"OUTPUT1\" \
                   cls { count: 1 } }";
    let header = [("NV-InferRequest", request)];
    let got = call(&ctx, "POST /api/infer/simple", &header, tensors(5, 3)).await;
    let head = "model_name: \"simple\" model_version: 1 batch_size: 1 output { name: \"OUTPUT1\"";
    assert_eq!(got.response, Some(format!("{head} }}")));
    let trailer: InferResponseHeader =
        text::parse(std::str::from_utf8(&got.body).unwrap()).unwrap();
    assert_eq!(
        text::print_line(&trailer),
        format!("{head} batch_classes {{ cls {{ value: 2 label: \"zero\" }} }} }}")
    );
}

#[tokio::test]
async fn legacy_clients_get_legacy_responses() {
    let request = "batch_size: 1 input { name: \"INPUT0\" byte_size: 64 } input { name: \"INPUT1\" byte_size: 64 } \
                   output { name: \"OUTPUT0\" byte_size: 64 }";
    let agent = ("User-Agent", "libcurl-agent/1.0");
    let per_item = "output { name: \"OUTPUT0\" raw { byte_size: 64 } }";
    for (flags, line, headers, binary) in [
        ("", "POST /api/infer/simple", vec![], false),
        ("", "POST /api/infer/simple", vec![agent], true),
        ("", "POST /api/infer/simple?format=text", vec![agent], false),
        ("--model_base_path=/n", "POST /api/infer/simple", vec![], true),
    ] {
        let ctx = testing::context(flags);
        let headers = [headers, vec![("NV-InferRequest", request)]].concat();
        let got = call(&ctx, line, &headers, tensors(5, 3)).await;
        assert!(got.response.unwrap().ends_with(per_item));
        assert_eq!(got.status.unwrap().contains("server_id"), flags.is_empty());
        let trailer = &got.body[64..];
        if binary {
            let per_item = b"\x22\x0d\x0a\x07OUTPUT0\x12\x02\x08\x40";
            assert_eq!(trailer[..12], *b"\x0a\x06simple\x10\x01\x18\x01");
            assert_eq!(trailer[12..27], *per_item);
            assert_eq!(trailer.len() > 27, !flags.is_empty());
        } else {
            let shown = "output {\n  name: \"OUTPUT0\"\n  raw {\n    byte_size: 64\n  }\n}\n";
            assert!(std::str::from_utf8(trailer).unwrap().ends_with(shown));
        }
    }
}

#[tokio::test]
async fn failures_have_code_status_and_no_body() {
    let ctx = testing::context("");
    let strings = "batch_size: 1 input { name: \"V\" dims: [0, 2] } input { name: \"S\" batch_byte_size: 4 } id: 9";
    let half = "batch_size: 1 input { name: \"V\" dims: [0, 2] } input { name: \"S\" batch_byte_size: 8 } output { \
                name: \"F\" cls { count: 1 } }";
    let simple = &*format!("{SIMPLE} id: 9");
    let invalid = |msg: &str, id| fail("INVALID_ARG", msg, id);
    let unknown =
        |m: &str| fail("UNAVAILABLE", &format!("Inference request for unknown model \\'{m}\\'"), 0);
    let rows = [
        ("/api/infer/x", Some(simple), 128, unknown("x"), "id: 9"),
        ("/api/infer", Some(simple), 0, unknown(""), "id: 9"),
        ("/api/infer/simple/7", None, 0, unknown("simple"), ""),
        (
            "/api/infer/simple",
            Some("x"),
            0,
            invalid("unable to parse request for model \\'simple\\'", 0),
            "",
        ),
        (
            "/api/infer/simple",
            None,
            128,
            invalid("inference request batch-size must be >= 1 for \\'simple\\'", 0),
            "",
        ),
        (
            "/api/infer/simple",
            Some(simple),
            0,
            invalid(
                "unexpected size for input \\'INPUT0\\', missing expecting 64 bytes for model \\'simple\\'",
                0,
            ),
            "id: 9",
        ),
        (
            "/api/infer/simple",
            Some(simple),
            129,
            invalid("unexpected additional input data for model \\'simple\\'", 0),
            "id: 9",
        ),
        (
            "/api/infer/m",
            Some(strings),
            4,
            fail("INTERNAL", "expected 2 strings for inference input \\'S\\', got 1", 1),
            "id: 9",
        ),
        (
            "/api/infer/m",
            Some(half),
            8,
            invalid(
                "class result not available for output \\'F\\' due to unsupported type \\'TYPE_FP16\\'",
                2,
            ),
            "",
        ),
        (
            "/api/infer/m",
            Some(half.split(" output").next().unwrap()),
            8,
            fail("INTERNAL", "backend says no", 3),
            "",
        ),
    ];
    for (path, header, bytes, status, response) in rows {
        let headers: Vec<_> = header.into_iter().map(|h| ("NV-InferRequest", h)).collect();
        let got = call(&ctx, &format!("POST {path}"), &headers, vec![0; bytes]).await;
        let want = Received {
            code: 400,
            status,
            response: Some(response.to_owned()),
            content_type: Some("application/octet-stream".into()),
            body: vec![],
        };
        assert_eq!(got, want, "{path} {header:?}");
    }
    ctx.state.set_phase(ServerPhase::Exiting);
    let got =
        call(&ctx, "POST /api/infer/simple", &[("NV-InferRequest", simple)], tensors(1, 1)).await;
    assert_eq!(got.status, fail("UNAVAILABLE", "Server not ready", 0));

    let failed = |m| {
        let counters = ctx.models.find(m, None).unwrap().stats.snapshot();
        counters.requests.iter().map(|(b, r)| (*b, r.failed.count)).collect::<Vec<_>>()
    };
    assert_eq!(failed("simple"), [(0, 2), (1, 3)]);
    assert_eq!(failed("m"), [(1, 3)]);
    assert_eq!(ctx.state.in_flight(), 0);
}

#[tokio::test]
async fn client_disconnect_cancels_its_request() {
    let ctx = testing::context("");
    let slow = format!("{SIMPLE} id: 200000");
    let headers = [("NV-InferRequest", &*slow)];
    let limit = std::time::Duration::from_millis(20);
    // The second request waits behind the first, and is removed from the queue.
    let first = call(&ctx, "POST /api/infer/simple", &headers, tensors(1, 1));
    let second = call(&ctx, "POST /api/infer/simple", &headers, tensors(1, 1));
    let second = tokio::time::timeout(limit, second);
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.code, 200);
    assert!(second.is_err());
    let served = ctx.models.find("simple", None).unwrap();
    for _ in 0..500 {
        if served.stats.snapshot().failures[1] == 1 {
            assert_eq!(ctx.state.in_flight(), 0);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("the request was not cancelled: {:?}", served.stats.snapshot().failures);
}
