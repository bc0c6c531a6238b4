//! docs/protocol/v1.md §3, §5: routing, headers and results over HTTP.

use super::SERVER;
use trtserver_tests::Response;
use trtserver_tests::http1::request;

fn infer(path: &str, header: &str, body: &[u8]) -> Response {
    SERVER.post(&format!("/api/infer/{path}"), &[("NV-InferRequest", header)], body)
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// `/api/health` and `/api/infer` without more are handled; the model of a path is not decoded, the
/// query is.
#[test]
fn routing() {
    let health = SERVER.get("/api/health");
    assert_eq!((health.status, health.body.len()), (400, 0));
    let status = health.error_text();
    assert!(status.starts_with("code: UNKNOWN msg: \"unknown health mode \\'\\'\""), "{status}");
    let infer_alone = SERVER.send(request("POST", "/api/infer", &[], b""));
    let status = infer_alone.error_text();
    let text = "code: UNAVAILABLE msg: \"Inference request for unknown model \\'\\'\"";
    assert!(infer_alone.status == 400 && status.starts_with(text), "{status}");
    for path in [
        "/api/infer/",
        "/api/infer/echo/x",
        "/api/infer/echo/-1",
        "/api/infer/echo/1/",
        "/API/status",
    ] {
        let response = SERVER.send(request("POST", path, &[], b""));
        let expected = if path.starts_with("/api") { 400 } else { 404 };
        assert_eq!((response.status, response.header("nv-status")), (expected, None), "{path}");
    }
    let undecoded = infer("ec%68o", "batch_size: 1", b"").error_text();
    assert!(undecoded.contains("unknown model \\'ec%68o\\'"), "{undecoded}");
    let zero = infer("echo/0", "batch_size: 1", b"").error_text();
    assert!(zero.contains("unknown model \\'echo\\'"), "{zero}");
    let binary = SERVER.get("/api/status/echo?format=bin%61ry");
    assert_eq!(binary.header("content-type"), Some("application/octet-stream"));
}

/// Formats of the status: text is sent as text/html, JSON on request or by `Accept`.
#[test]
fn status_formats() {
    let all = SERVER.get("/api/status/");
    assert!(all.status == 200 && all.text().contains("key: \"echo\""), "{}", all.text());
    for query in ["", "?format=text", "?format=xml"] {
        let text = SERVER.get(&format!("/api/status/echo{query}"));
        let kind = text.header("content-type");
        assert_eq!(kind, Some("text/html; charset=ISO-8859-1"), "{query}");
        assert!(text.text().starts_with("id: \"inference:0\"\n"), "{query}");
    }
    let binary = SERVER.get("/api/status/echo?format=binary");
    assert_eq!(binary.header("content-type"), Some("application/octet-stream"));
    assert!(binary.body.starts_with(b"\x0a\x0binference:0"), "{:?}", &binary.body[..20]);
    let by_header = [("Accept", "application/json")];
    for (query, headers, json) in [
        ("?format=json", &[][..], true),
        ("", &by_header[..], true),
        ("?format=text", &by_header[..], false),
    ] {
        let path = format!("/api/status/echo{query}");
        let response = SERVER.send(request("GET", &path, headers, b""));
        assert_eq!(response.text().starts_with('{'), json, "{query}: {}", response.text());
        assert!(response.header("nv-status").is_some_and(|status| status.contains("SUCCESS")));
    }
}

/// Names of headers in any case, no requested output, an empty dimension.
#[test]
fn requests_at_the_edge() {
    let header = r#"batch_size: 1 id: 5 input { name: "INPUT0" dims: 2 }"#;
    let path = "/api/infer/echo";
    let response = SERVER.post(path, &[("nv-inferREQUEST", header)], [0; 8]);
    assert_eq!(response.status, 200, "{}", response.error_text());
    let one_line = r#"model_name: "echo" model_version: 1 batch_size: 1 id: 5"#;
    assert_eq!(response.header("nv-inferresponse"), Some(one_line));
    assert_eq!(
        response.text(),
        one_line
            .replace(" batch", "\nbatch")
            .replace(" model_v", "\nmodel_v")
            .replace(" id", "\nid")
            + "\n"
    );
    let empty = r#"batch_size: 1 input { name: "INPUT0" dims: 0 } output { name: "OUTPUT0" }"#;
    let response = infer("identity_fp32", empty, b"");
    assert_eq!(response.status, 200, "{}", response.error_text());
    let shape = r#"output { name: "OUTPUT0" raw { dims: 0 } }"#;
    assert!(
        response.header("nv-inferresponse").is_some_and(|h| h.contains(shape)),
        "{:?}",
        response.headers
    );
    // The body is a tensor of the whole batch, whose items follow each other.
    let two = r#"batch_size: 2 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;
    let response = infer("identity_fp32", two, &floats(&[1., 2., 3., 4.]));
    assert!(response.body.starts_with(&floats(&[1., 2., 3., 4.])));
    let shape = "raw { dims: 2 batch_byte_size: 16 }";
    assert!(
        response.header("nv-inferresponse").is_some_and(|h| h.contains(shape)),
        "{:?}",
        response.headers
    );
    // Without a batch dimension the shape is whole.
    let response =
        infer("identity_fp32_nobatch", &two.replace("batch_size: 2", "batch_size: 1"), &[0; 8]);
    let shape = "raw { dims: 2 batch_byte_size: 8 }";
    assert!(
        response.header("nv-inferresponse").is_some_and(|h| h.contains(shape)),
        "{:?}",
        response.headers
    );
}

/// Class results: `count` 0 is raw, ties are in order of their index, the classes are in the
/// trailer, not in NV-InferResponse; types without order have none.
#[test]
fn classes() {
    let header = |model: &str, count: &str, dims: usize| {
        let output = format!(r#"output {{ name: "OUTPUT0" cls {{ count: {count} }} }}"#);
        (
            model.to_owned(),
            format!(r#"batch_size: 1 input {{ name: "INPUT0" dims: {dims} }} {output}"#),
        )
    };
    let (model, request) = header("classes", "0", 5);
    let values = floats(&[1., 5., 2., 5., 3.]);
    let response = infer(&model, &request, &values);
    assert!(response.body.starts_with(&values), "{}", response.text());
    let (model, request) = header("classes", "3", 5);
    let response = infer(&model, &request, &values);
    let text = response.text();
    let order: Vec<&str> =
        text.lines().filter(|line| line.contains("idx:")).map(str::trim).collect();
    assert_eq!(order, ["idx: 1", "idx: 3", "idx: 4"], "{text}");
    let copy = response.header("nv-inferresponse").unwrap_or_default();
    assert!(copy.ends_with("output { name: \"OUTPUT0\" }"), "{copy}");

    for (kind, bytes) in [("bool", 1), ("fp16", 2)] {
        let (model, request) = header(&format!("identity_{kind}"), "1", 1);
        let error = infer(&model, &request, &vec![0; bytes]).error_text();
        let text = format!(
            "code: INVALID_ARG msg: \"class result not available for output \\'OUTPUT0\\' due to unsupported type \\'TYPE_{}\\'\"",
            kind.to_uppercase()
        );
        assert!(error.starts_with(&text), "{error}");
    }
}

/// Control endpoints have malformed paths and wrong methods refused without NV-Status, and a status
/// in binary.
#[test]
fn control_endpoints() {
    for (method, path, code) in [
        ("POST", "/api/modelcontrol/load", 400),
        ("POST", "/api/modelcontrol/restart/echo", 400),
        ("GET", "/api/modelcontrol/load/echo", 405),
        ("GET", "/api/repository", 400),
        ("POST", "/api/repository/index", 405),
        ("POST", "/api/sharedmemorycontrol/register/a//key/x/8", 400),
        ("POST", "/api/sharedmemorycontrol/register/a//key/0", 400),
        ("POST", "/api/sharedmemorycontrol/status", 405),
        ("GET", "/api/sharedmemorycontrol/unregisterall", 405),
        ("POST", "/api/sharedmemorycontrol/sing", 400),
    ] {
        let response = SERVER.send(request(method, path, &[], b""));
        assert_eq!((response.status, response.text().as_str()), (code, ""), "{method} {path}");
        assert_eq!(response.header("nv-status"), None, "{method} {path}");
    }
    let index = SERVER.get("/api/repository/index?format=binary");
    assert_eq!(index.header("content-type"), Some("application/octet-stream"));
    assert!(index.body.starts_with(b"\x0a"), "{:?}", index.body);
    let status = SERVER.get("/api/sharedmemorycontrol/status");
    assert_eq!((status.status, status.text().as_str()), (200, ""));
    for path in ["unregister/unknown", "unregisterall"] {
        let path = format!("/api/sharedmemorycontrol/{path}?format=binary");
        let response = SERVER.post(&path, &[], "");
        assert_eq!((response.status, response.text().as_str()), (200, ""), "{path}");
        assert!(response.header("nv-status").is_some_and(|s| s.contains("SUCCESS")), "{path}");
    }
}
