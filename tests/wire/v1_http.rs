//! v1 over HTTP: the client of 2020, and exact bytes.

use std::sync::LazyLock;
use trtserver_tests::http1::request;
use trtserver_tests::{Response, Running, Server, every_model, python_v1};

static SERVER: LazyLock<Running> = LazyLock::new(|| every_model().start_shared());

const ADDSUB: &str = r#"batch_size: 1 input { name: "INPUT0" dims: 16 } input { name: "INPUT1" dims: 16 } output { name: "OUTPUT0" } output { name: "OUTPUT1" }"#;

/// INPUT0 is 0 to 15, INPUT1 is all 1.
fn addsub_body() -> Vec<u8> {
    let ints = (0..16).chain([1; 16]);
    ints.flat_map(i32::to_le_bytes).collect()
}

fn ints(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn infer(path: &str, header: &str, body: &[u8]) -> Response {
    SERVER.post(path, &[("NV-InferRequest", header)], body)
}

/// The server is not shared: the script looks at its request ids, which count the requests of all
/// clients.
#[test]
fn v1_client() {
    python_v1(&every_model().start(), "v1_http.py", &[]);
}

#[test]
fn infer_response_byte_by_byte() {
    let response = infer("/api/infer/addsub_int32", ADDSUB, &addsub_body());
    assert_eq!(response.status, 200, "{:?}", response.headers);
    assert_eq!(response.header("content-type"), Some("application/octet-stream"));
    let (raw, trailer) = response.body.split_at(128);
    assert_eq!(ints(&raw[..64]), (1..17).collect::<Vec<_>>());
    assert_eq!(ints(&raw[64..]), (-1..15).collect::<Vec<_>>());
    let one_line = r#"model_name: "addsub_int32" model_version: 1 batch_size: 1 output { name: "OUTPUT0" raw { dims: 16 batch_byte_size: 64 } } output { name: "OUTPUT1" raw { dims: 16 batch_byte_size: 64 } }"#;
    assert_eq!(response.header("nv-inferresponse"), Some(one_line));
    let trailer = String::from_utf8_lossy(trailer);
    let many_lines = r#"model_name: "addsub_int32"
model_version: 1
batch_size: 1
output {
  name: "OUTPUT0"
  raw {
    dims: 16
    batch_byte_size: 64
  }
}
output {
  name: "OUTPUT1"
  raw {
    dims: 16
    batch_byte_size: 64
  }
}
"#;
    assert_eq!(trailer, many_lines);
    let status = response.header("nv-status").unwrap_or_default();
    let id = status.strip_prefix(r#"code: SUCCESS server_id: "inference:0" request_id: "#);
    assert!(id.is_some_and(|id| id.parse::<u64>().is_ok_and(|id| id > 0)), "{status}");
}

#[test]
fn binary_response_header() {
    let response = infer("/api/infer/addsub_int32?format=binary", ADDSUB, &addsub_body());
    // Field 1, a string of 12 bytes, and its bytes; then field 2 is 1, field 3 is 1, and two
    // outputs follow.
    let trailer = &response.body[128..];
    assert_eq!(&trailer[..20], b"\x0a\x0caddsub_int32\x10\x01\x18\x01\x22\x10");
}

#[test]
fn outputs_are_in_requested_order() {
    let header = ADDSUB.replace(
        r#"output { name: "OUTPUT0" } output { name: "OUTPUT1" }"#,
        r#"output { name: "OUTPUT1" } output { name: "OUTPUT0" }"#,
    );
    let response = infer("/api/infer/addsub_int32", &header, &addsub_body());
    assert_eq!(ints(&response.body[..8]), [-1, 0]);
    let names = response.header("nv-inferresponse").unwrap_or_default();
    assert!(names.find("OUTPUT1") < names.find("OUTPUT0"), "{names}");
}

#[test]
fn request_header_spellings() {
    for header in [
        "batch_size:1,input:{name:'INPUT0',dims:[16]};input<name:\"INPUT1\" dims:16>output{name:\"OUTPUT0\"}",
        "input { name: \"INPUT0\" dims: [ 0x10 ] batch_byte_size: 64 } input { name: \"INPUT\" '1' dims: 020 } \
         output { name: \"OUTPUT\\060\" } batch_size: 1 id: 7",
    ] {
        let response = infer("/api/infer/addsub_int32", header, &addsub_body());
        assert_eq!(response.status, 200, "{header}: {}", response.error_text());
        assert_eq!(ints(&response.body[..64]), (1..17).collect::<Vec<_>>(), "{header}");
    }
}

#[test]
fn request_id_is_returned() {
    let header = format!("id: 99 {ADDSUB}");
    let response = infer("/api/infer/addsub_int32", &header, &addsub_body());
    let header = response.header("nv-inferresponse").unwrap_or_default();
    assert!(header.contains("id: 99"), "{header}");
    // Also on an error.
    let response = infer("/api/infer/addsub_int32", "id: 99 batch_size: 1", &[]);
    assert_eq!(response.status, 400);
    assert_eq!(response.header("nv-inferresponse"), Some("id: 99"));
}

#[test]
fn byte_size_field_of_2018() {
    let header = r#"batch_size: 1 input { name: "INPUT0" byte_size: 64 } input { name: "INPUT1" byte_size: 64 } output { name: "OUTPUT0" byte_size: 64 }"#;
    let response = infer("/api/infer/addsub_int32", header, &addsub_body());
    assert_eq!(response.status, 200, "{}", response.error_text());
    assert_eq!(ints(&response.body[..64]), (1..17).collect::<Vec<_>>());
}

#[test]
fn classification_response() {
    let header = r#"batch_size: 1 input { name: "INPUT0" dims: 5 } output { name: "OUTPUT0" cls { count: 2 } }"#;
    let body: Vec<u8> = [1f32, 5., 2., 4., 3.].into_iter().flat_map(f32::to_le_bytes).collect();
    let response = infer("/api/infer/classes", header, &body);
    let text = response.text();
    let start = "model_name: \"classes\"\nmodel_version: 1\nbatch_size: 1\noutput {\n  name: \"OUTPUT0\"\n  batch_classes {\n    cls {\n      idx: 1\n      value: 5\n      label: \"green\"\n    }\n";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn chunked_body() {
    let body = addsub_body();
    let mut bytes = format!(
        "POST /api/infer/addsub_int32 HTTP/1.1\r\nHost: x\r\nNV-InferRequest: {ADDSUB}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for piece in body.chunks(50) {
        bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
        bytes.extend(piece);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    let response = SERVER.send(bytes);
    assert_eq!(response.status, 200, "{}", response.error_text());
    assert_eq!(ints(&response.body[..64]), (1..17).collect::<Vec<_>>());
}

#[test]
fn pipelined_requests() {
    let one =
        request("POST", "/api/infer/addsub_int32", &[("NV-InferRequest", ADDSUB)], &addsub_body());
    let mut connection = SERVER.connect();
    connection.send([one.clone(), one].concat());
    for _ in 0..2 {
        let response = connection.response();
        assert_eq!((response.status, ints(&response.body[..8])), (200, vec![1, 2]));
    }
}

#[test]
fn response_does_not_wait_for_next_request() {
    let one =
        request("POST", "/api/infer/addsub_int32", &[("NV-InferRequest", ADDSUB)], &addsub_body());
    // Some clients send an empty line after the body.
    for next in ["\r\n", "GET /api/hea"] {
        let mut connection = SERVER.connect();
        connection.send([one.as_slice(), next.as_bytes()].concat());
        assert_eq!(connection.response().status, 200, "{next:?}");
    }
}

#[test]
fn health() {
    for path in ["/api/health/live", "/api/health/ready"] {
        let response = SERVER.get(path);
        assert_eq!((response.status, response.body.len()), (200, 0), "{path}");
        let status = response.header("nv-status").unwrap_or_default();
        assert!(
            status.starts_with(r#"code: SUCCESS server_id: "inference:0" request_id: "#),
            "{status}"
        );
    }
}

#[test]
fn status_as_text() {
    let response = SERVER.get("/api/status/versions");
    assert_eq!(response.status, 200);
    let text = response.text();
    assert!(text.starts_with("id: \"inference:0\"\n"), "{text}");
    for part in [
        "model_status {\n  key: \"versions\"\n  value {\n    config {\n      name: \"versions\"\n",
        "    version_status {\n      key: 1\n      value {\n        ready_state: MODEL_READY\n",
        "ready_state: SERVER_READY\n",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // Server counters are only in the status of all models.
    assert!(!text.contains("status_stats"), "{text}");
    let all = SERVER.get("/api/status").text();
    assert!(all.contains("status_stats {") && all.contains("key: \"echo\""), "{all}");
}

/// Clients read the tensors of a model there; without them they report an unknown output.
#[test]
fn status_of_refused_models_has_configuration_and_versions() {
    let config = |name: &str, platform: &str| {
        format!(
            "name: \"{name}\" platform: \"{platform}\" max_batch_size: 8 version_policy {{ all {{ }} }}\n\
             input [ {{ name: \"IN\" data_type: TYPE_FP32 dims: [ 4 ] }} ]\n\
             output [ {{ name: \"OUT\" data_type: TYPE_FP32 dims: [ 4 ] }} ]\n"
        )
    };
    let names = [
        ("netdef", "caffe2_netdef"),
        ("onnx", "onnxruntime_onnx"),
        ("graph", "tensorflow_graphdef"),
    ];
    for strict in ["true", "false"] {
        let server = Server::new().flag("--exit-on-error=false");
        let mut server = server.flag(format!("--strict-model-config={strict}"));
        for (name, platform) in names {
            server =
                server.model(name, config(name, platform)).file(&format!("{name}/3/other"), "");
        }
        let server = server.start();
        for (name, _) in names {
            let status = server.get(&format!("/api/status/{name}")).text();
            for part in [
                "      max_batch_size: 8\n",
                "        name: \"IN\"\n        data_type: TYPE_FP32\n        dims: 4\n",
                "        name: \"OUT\"\n",
                "    version_status {\n      key: 1\n      value {\n        ready_state: MODEL_UNAVAILABLE\n",
                "      key: 3\n      value {\n        ready_state: MODEL_UNAVAILABLE\n",
                "ready_state_reason {",
            ] {
                assert!(status.contains(part), "strict {strict}: no {part:?} in {status}");
            }
        }
    }
}

#[test]
fn status_of_unknown_model() {
    let response = SERVER.get("/api/status/absent");
    assert_eq!((response.status, response.body.len()), (400, 0));
    let error_text = response.error_text();
    assert!(
        error_text.starts_with(
            r#"code: INVALID_ARG msg: "no status available for unknown model \'absent\'" server_id: "inference:0" request_id: "#
        ) || error_text.starts_with(
            r#"code: INVALID_ARG msg: "no status available for unknown model 'absent'" server_id: "inference:0" request_id: "#
        ),
        "{error_text}"
    );
}

#[test]
fn profile_is_unsupported() {
    let response = SERVER.get("/api/profile?cmd=start");
    assert_eq!(response.status, 400);
    let error_text = response.error_text();
    assert!(
        error_text.contains("UNSUPPORTED") && error_text.contains("Profile API not enabled"),
        "{error_text}"
    );
}

#[test]
fn unknown_paths() {
    for path in [
        "/api",
        "/api/health/foo",
        "/api/infer/a/b",
        "/api/infer/m/1/x",
        "/api/statusx",
        "/api/v1/x",
    ] {
        let method = if path.contains("infer") { "POST" } else { "GET" };
        let response = SERVER.send(request(method, path, &[], b""));
        assert_eq!((response.status, response.header("nv-status")), (400, None), "{path}");
        assert_eq!(response.text(), "", "{path}");
    }
}

/// The errors before execution in the order of their checks (docs/protocol/v1.md §3.6): status,
/// headers, no body.
#[test]
fn error_ladder() {
    const A: &str = r#"input { name: "INPUT0" dims: 16 }"#;
    const B: &str = r#"input { name: "INPUT1" dims: 16 }"#;
    let both = |more: &str| format!("batch_size: 1 {A} {B} {more}");
    let one = |input: &str| format!("batch_size: 1 input {{ name: \"INPUT0\" {input} }}");
    let unknown = |model: &str| format!("Inference request for unknown model '{model}'");
    let addsub = "addsub_int32";
    let rows: &[(&str, String, usize, String)] = &[
        ("absent", both(""), 128, unknown("absent")),
        ("addsub_int32/99", both(""), 128, unknown(addsub)),
        ("absent", "garbage".to_owned(), 0, unknown("absent")),
        (addsub, "garbage".to_owned(), 128, format!("unable to parse request for model '{addsub}'")),
        (addsub, String::new(), 128, format!("inference request batch-size must be >= 1 for '{addsub}'")),
        (
            addsub,
            both("").replace("batch_size: 1", "batch_size: 9"),
            9 * 128,
            format!("inference request batch-size must be <= 8 for '{addsub}'"),
        ),
        (
            addsub,
            both(r#"output { name: "OUTPUT9" }"#),
            128,
            format!("unexpected inference output 'OUTPUT9' for model '{addsub}'"),
        ),
        (
            addsub,
            both(r#"output { name: "OUTPUT0" } output { name: "OUTPUT0" }"#),
            128,
            "output 'OUTPUT0' already requested".to_owned(),
        ),
        (addsub, one("dims: 16"), 64, format!("expected 2 inputs but got 1 inputs for model '{addsub}'")),
        (
            addsub,
            format!("batch_size: 1 {A} {A}"),
            128,
            "input 'INPUT0' already exists in request".to_owned(),
        ),
        (
            addsub,
            both("").replace("INPUT1", "INPUT9"),
            128,
            format!("unexpected inference input 'INPUT9' for model '{addsub}'"),
        ),
        (
            addsub,
            both("").replacen("dims: 16", "dims: [ 4, 4 ]", 1),
            128,
            format!("unexpected shape for input 'INPUT0' for model '{addsub}'. Expected [16], got [4,4]"),
        ),
        (
            "identity_fp32",
            one(""),
            8,
            "model supports variable-size for input 'INPUT0', request must specify input shape for model \
             'identity_fp32'"
                .to_owned(),
        ),
        (
            addsub,
            both("").replacen("dims: 16", "dims: 16 batch_byte_size: 63", 1),
            128,
            format!(
                "specific batch-byte-size for input 'INPUT0' does not match expected byte-size calculated from shape and \
                 datatype for model '{addsub}'"
            ),
        ),
        (
            "identity_string",
            one("dims: 1"),
            8,
            "batch-byte-size must be specified for input 'INPUT0' with non-fixed-size datatype for model \
             'identity_string'"
                .to_owned(),
        ),
        (
            addsub,
            both(""),
            100,
            format!("unexpected size for input 'INPUT1', missing expecting 28 bytes for model '{addsub}'"),
        ),
        (
            addsub,
            both(""),
            0,
            format!("unexpected size for input 'INPUT0', missing expecting 64 bytes for model '{addsub}'"),
        ),
        (addsub, both(""), 129, format!("unexpected additional input data for model '{addsub}'")),
    ];
    for (model, header, bytes, text) in rows {
        let header: &[(&str, &str)] =
            if header.is_empty() { &[] } else { &[("NV-InferRequest", header)] };
        let response = SERVER.post(&format!("/api/infer/{model}"), header, vec![0; *bytes]);
        assert_eq!((response.status, response.body.len()), (400, 0), "{text}");
        assert_eq!(response.header("content-type"), Some("application/octet-stream"), "{text}");
        assert_eq!(response.header("nv-inferresponse"), Some(""), "{text}");
        let code = if text.contains("unknown model") { "UNAVAILABLE" } else { "INVALID_ARG" };
        let status = format!("code: {code} msg: \"{text}\" server_id: \"inference:0\"");
        assert_eq!(response.error_text().replace("\\'", "'"), status);
    }
}

/// TRTIS refuses every unknown path with 400; outside of health this server answers 404, as Triton.
#[test]
fn health_under_another_path() {
    for path in ["/anything/health/ready", "/health/live", "/v1/health/ready"] {
        let response = SERVER.get(path);
        assert_eq!((response.status, response.header("nv-status")), (400, None), "{path}");
        assert_eq!(response.text(), "", "{path}");
    }
}

#[test]
fn wrong_methods() {
    for (method, path) in [
        ("POST", "/api/health/live"),
        ("DELETE", "/api/status"),
        ("GET", "/api/infer/echo"),
        ("PUT", "/api/infer/echo"),
    ] {
        let response = SERVER.send(request(method, path, &[], b""));
        assert_eq!((response.status, response.text().as_str()), (405, ""), "{method} {path}");
    }
}
