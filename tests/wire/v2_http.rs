//! v2 (Open Inference Protocol) over HTTP: the current client, and exact bytes.

use serde_json::json;
use std::sync::LazyLock;
use trtserver_tests::http1::request;
use trtserver_tests::{Response, Running, every_model, python_v2};

static SERVER: LazyLock<Running> = LazyLock::new(|| every_model().start_shared());

const LENGTH: &str = "Inference-Header-Content-Length";

fn infer(model: &str, json: &str) -> Response {
    SERVER.post(&format!("/v2/models/{model}/infer"), &[], json)
}

/// An input of two FP32 in JSON.
const INPUT: &str = r#"{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}"#;

/// Errors are JSON with one key.
fn refused(response: &Response, status: u16, text: &str) {
    refused_as(response, status, text, "application/json");
}

/// Errors before the endpoint is known are JSON too, without the content type.
fn refused_early(response: &Response, status: u16, text: &str) {
    refused_as(response, status, text, "text/plain");
}

fn refused_as(response: &Response, status: u16, text: &str, kind: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("content-type"), Some(kind));
    assert_eq!(response.json(), json!({ "error": text }));
}

#[test]
fn v2_client() {
    python_v2(&SERVER, "v2_http.py", &[]);
}

#[test]
fn infer_response_byte_by_byte() {
    let response = infer("echo", &format!(r#"{{"id":"a","inputs":[{INPUT}]}}"#));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("inference-header-content-length"), None);
    let expected = r#"{"id":"a","model_name":"echo","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[1,2],"data":[1.0,2.0]}]}"#;
    assert_eq!(response.text(), expected);
}

#[test]
fn numbers_round_trip() {
    for (datatype, data, printed) in [
        ("FP32", "0.1, 16777217, -0.0", "0.1,16777216.0,-0.0"),
        ("FP64", "0.1, 1234567.5, 3", "0.1,1234567.5,3.0"),
        (
            "INT64",
            "9223372036854775807, -9223372036854775808, 0",
            "9223372036854775807,-9223372036854775808,0",
        ),
        ("UINT64", "18446744073709551615, 0, 1", "18446744073709551615,0,1"),
        ("INT8", "-128, 127, 300", "-128,127,44"),
        ("FP32", "NaN, Infinity, -Infinity", "NaN,Infinity,-Infinity"),
        ("BOOL", "true, false, true", "true,false,true"),
        ("FP16", "0.1, 65504, 1e9", "0.1,65500.0,Infinity"),
        ("BF16", "0.1, -65504, NaN", "0.1,-65500.0,NaN"),
    ] {
        let model = format!("identity_{}", datatype.to_lowercase());
        let json = format!(
            r#"{{"inputs":[{{"name":"INPUT0","datatype":"{datatype}","shape":[1,3],"data":[{data}]}}]}}"#
        );
        let response = infer(&model, &json);
        let text = response.text();
        assert!(text.contains(&format!(r#""data":[{printed}]"#)), "{datatype}: {text}");
    }
}

/// Long arrays are read and written on the decode workers. The members of an input may come in any
/// order.
#[test]
fn long_json_tensor_round_trips() {
    let values: Vec<f32> = (0..100_000).map(|i| (i as f32 * 0.7).sin() * 1e3).collect();
    let data = json!(values);
    for input in [
        format!(r#"{{"name":"INPUT0","shape":[1,100000],"datatype":"FP32","data":{data}}}"#),
        format!(r#"{{"data": {data}, "datatype":"FP32","name":"INPUT0","shape":[1,100000]}}"#),
        format!(r#"{{"shape":[1,100000],"data":[{data}],"name":"INPUT0","datatype":"FP32"}}"#),
    ] {
        let response = infer("echo", &format!(r#"{{"inputs":[{input}]}}"#));
        assert_eq!(response.status, 200, "{}", &response.text()[..200]);
        let data = response.json()["outputs"][0]["data"].take();
        let got: Vec<f32> = serde_json::from_value(data).unwrap();
        assert!(got == values);
    }
}

#[test]
fn nested_data() {
    for data in ["[1,2,3,4]", "[[1,2],[3,4]]", "[[[1],[2]],[[3],[4]]]", "[[1,2,3],4]"] {
        let json = format!(
            r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[2,2],"data":{data}}}]}}"#
        );
        let text = infer("echo", &json).text();
        assert!(text.contains(r#""data":[1.0,2.0,3.0,4.0]"#), "{data}: {text}");
    }
}

#[test]
fn binary_input_and_output() {
    let json = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}],"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]}"#;
    let tensor = [1.5f32.to_le_bytes(), 2.5f32.to_le_bytes()].concat();
    let body = [json.as_bytes(), &tensor].concat();
    let length = json.len().to_string();
    let response = SERVER.post("/v2/models/echo/infer", &[(LENGTH, &length)], &body);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/octet-stream"));
    let length = response.header("inference-header-content-length");
    let length: usize = length.and_then(|n| n.parse().ok()).unwrap_or_default();
    let (head, tail) = response.body.split_at(length);
    assert_eq!(
        String::from_utf8_lossy(head),
        r#"{"model_name":"echo","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]}"#
    );
    assert_eq!(tail, tensor);
}

#[test]
fn binary_output_default_and_per_output() {
    let binary = |more: &str| {
        let json = format!(r#"{{"inputs":[{INPUT}]{more}}}"#);
        let response = infer("echo", &json);
        assert_eq!(response.status, 200, "{}", response.text());
        response.header("inference-header-content-length").is_some()
    };
    let all = r#","parameters":{"binary_data_output":true}"#;
    assert!(!binary(""));
    assert!(binary(all));
    assert!(!binary(r#","outputs":[{"name":"OUTPUT0"}]"#));
    assert!(!binary(&format!(r#"{all},"outputs":[{{"name":"OUTPUT0"}}]"#)));
    assert!(binary(r#","outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]"#));
}

#[test]
fn raw_binary_request() {
    let tensor: Vec<u8> = [1f32, 2., 3.].into_iter().flat_map(f32::to_le_bytes).collect();
    let response = SERVER.post("/v2/models/echo/infer", &[(LENGTH, "0")], &tensor);
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(response.body.ends_with(&tensor));
    let text = response.text();
    assert!(text.contains(r#""shape":[1,3]"#), "{text}");
    // The header is read by the rules of `atoi`.
    for length in ["", "none", " 0x"] {
        let same = SERVER.post("/v2/models/echo/infer", &[(LENGTH, length)], &tensor);
        assert_eq!((same.status, same.body), (200, response.body.clone()), "{length:?}");
    }
    let response = SERVER.post("/v2/models/addsub_fp32/infer", &[(LENGTH, "0")], &tensor);
    let text = "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in 'addsub_fp32' model configuration";
    refused(&response, 400, text);
    let response = SERVER.post("/v2/models/identity_string/infer", &[(LENGTH, "0")], b"text");
    let text = "[request id: <id_unknown>] For BYTE datatype raw input 'INPUT0', the model must have input shape [1]";
    refused(&response, 400, text);
}

#[test]
fn health_is_empty_as_tritons_and_json_for_clients_that_ask() {
    for path in ["/v2/health/live", "/v2/health/ready", "/v2/models/echo/ready"] {
        for agent in ["curl/8.5.0", "kube-probe/1.31"] {
            let headers = [("Accept", "*/*"), ("User-Agent", agent)];
            let response = SERVER.send(request("GET", path, &headers, b""));
            assert_eq!((response.status, response.text().as_str()), (200, ""), "{path} {agent}");
        }
        // KServe's client asks for nothing, and parses JSON.
        let headers = [("Accept", "*/*"), ("User-Agent", "python-httpx/0.28.1")];
        assert!(SERVER.send(request("GET", path, &headers, b"")).json().is_object(), "{path}");
    }
    for (path, body) in [
        ("/v2/health/live", json!({"live": true})),
        ("/v2/health/ready", json!({"ready": true})),
        ("/v2/models/echo/ready", json!({"name": "echo", "ready": true})),
        ("/v2/models/versions/versions/3/ready", json!({"name": "versions", "ready": true})),
    ] {
        let response = SERVER.get_json(path);
        assert_eq!((response.status, response.json()), (200, body), "{path}");
    }
    for path in ["/v2/models/absent/ready", "/v2/models/versions/versions/2/ready"] {
        let response = SERVER.get(path);
        assert_eq!(
            (response.status, response.error_text().as_str()),
            (400, "Model version not ready")
        );
    }
}

#[test]
fn metadata_key_order() {
    assert_eq!(
        SERVER.get("/v2/models/versions").text(),
        r#"{"name":"versions","versions":["1","3"],"platform":"onnxruntime_onnx","inputs":[{"name":"INPUT0","datatype":"FP32","shape":[-1,-1]}],"outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[-1,-1]}]}"#
    );
    let text = SERVER.get("/v2").text();
    assert!(text.starts_with(r#"{"name":"triton","version":""#), "{text}");
}

#[test]
fn statistics_key_order() {
    // No other test of this file uses this model.
    let text = SERVER.get("/v2/models/digits/stats").text();
    let duration = r#"{"count":0,"ns":0}"#;
    let stats = [
        "success",
        "fail",
        "queue",
        "compute_input",
        "compute_infer",
        "compute_output",
        "cache_hit",
        "cache_miss",
    ];
    let stats: Vec<String> = stats.iter().map(|name| format!(r#""{name}":{duration}"#)).collect();
    let expected = format!(
        r#"{{"model_stats":[{{"name":"digits","version":"1","last_inference":0,"inference_count":0,"execution_count":0,"inference_stats":{{{}}},"response_stats":{{}},"batch_stats":[],"memory_usage":[],"batch_closed":{{"alone":0,"delay":0,"full":0,"preferred":0,"priority":0,"sequence":0,"shape":0}}}}]}}"#,
        stats.join(",")
    );
    assert_eq!(text, expected);
}

#[test]
fn model_config() {
    let response = SERVER.get("/v2/models/versions/config");
    let text = response.text();
    for part in [
        r#"{"name":"versions","platform":"onnxruntime_onnx""#,
        r#""dims":[-1]"#,
        r#""version_policy":{"all":{}}"#,
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn unknown_paths() {
    for path in [
        "/",
        "/v2/",
        "/v2/models/echo/",
        "/v2/health",
        "/v2/models/echo/versions/x",
        "/v3",
        "/v2/models/echo/sing",
    ] {
        refused_early(&SERVER.get(path), 404, "Not Found");
    }
}

#[test]
fn wrong_methods() {
    for (method, path) in [
        ("GET", "/v2/models/echo/infer"),
        ("POST", "/v2/health/live"),
        ("DELETE", "/v2/models/echo"),
        ("GET", "/v2/repository/index"),
    ] {
        let bare =
            path.contains("/health/") || path.ends_with("/infer") || path.ends_with("/ready");
        let kind = if bare { "text/plain" } else { "application/json" };
        let response = SERVER.send(request(method, path, &[], b""));
        refused_as(&response, 405, "Method Not Allowed", kind);
    }
}

#[test]
fn model_names_are_not_percent_decoded() {
    refused(
        &SERVER.get("/v2/models/ec%68o"),
        404,
        "Request for unknown model: 'ec%68o' is not found",
    );
}

#[test]
fn query_is_ignored() {
    assert_eq!(SERVER.get("/v2/models/echo?x=1").status, 200);
}

#[test]
fn expect_100_continue() {
    let json = format!(r#"{{"inputs":[{INPUT}]}}"#);
    let mut connection = SERVER.connect();
    let head = format!(
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        json.len()
    );
    connection.send(head).send(json);
    assert_eq!(connection.response().status, 200);
}

#[test]
fn keep_alive_after_refusal() {
    let good = request(
        "POST",
        "/v2/models/echo/infer",
        &[],
        format!(r#"{{"inputs":[{INPUT}]}}"#).as_bytes(),
    );
    let bad = request("POST", "/v2/models/absent/infer", &[], b"{}");
    let mut connection = SERVER.connect();
    for (bytes, status) in [(&good, 200), (&bad, 404), (&good, 200)] {
        assert_eq!(connection.send(bytes).response().status, status);
    }
}

#[test]
fn unknown_content_encoding_is_refused() {
    let response = SERVER.post("/v2/models/echo/infer", &[("Content-Encoding", "br")], "{}");
    assert_eq!(response.status, 501, "{}", response.text());
    assert_eq!(response.error_text(), "Unsupported compression type");
    assert_eq!(response.header("accept-encoding"), Some("gzip, deflate"));
}

#[test]
fn json_value_kinds_are_checked() {
    let with = |more: &str| infer("echo", &format!(r#"{{"inputs":[{INPUT}],{more}}}"#));
    for (more, status, text) in [
        (r#""id":5"#, 500, "Unable to parse 'id': attempt to access JSON non-string as string"),
        (
            r#""outputs":{}"#,
            500,
            "Unable to parse 'outputs': attempt to access JSON non-array as array",
        ),
        (
            r#""outputs":[{"name":"OUTPUT0","parameters":{"classification":1,"shared_memory_region":"x","shared_memory_byte_size":8}}]"#,
            400,
            "Output can't set both 'shared_memory_region' and 'classification'",
        ),
        (
            r#""parameters":{"priority":-1}"#,
            500,
            "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            r#""parameters":{"sequence_start":1}"#,
            500,
            "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
        ),
    ] {
        refused(&with(more), status, text);
    }
    let long = format!(r#""parameters":{{"sequence_id":"{}"}}"#, "x".repeat(129));
    refused(&with(&long), 501, "string correlation ID cannot be longer than 128 characters");
    let index = SERVER.post("/v2/repository/index", &[], r#"{"ready":1}"#);
    refused(&index, 400, "Invalid value for 'ready': expected a boolean");
}

#[test]
fn data_and_binary_size_together_are_refused() {
    let json = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2],"parameters":{"binary_data_size":8}}]}"#;
    let text = "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But set 'data' 'binary_data_size'";
    refused(&infer("echo", json), 400, text);
}

#[test]
fn parameters_are_checked() {
    for (parameters, status, text) in [
        (
            r#"{"triton_x":1}"#,
            400,
            "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
        ),
        (
            r#"{"mine":[1]}"#,
            400,
            "parameter 'mine' has invalid type. It should be either 'int', 'bool', or 'string'.",
        ),
        (
            r#"{"headers":{"a":"b"}}"#,
            400,
            "parameter 'headers' has invalid type. It should be either 'int', 'bool', or 'string'.",
        ),
        (
            r#"{"timeout":1.5}"#,
            500,
            "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            r#"{"sequence_id":-1}"#,
            500,
            "Unable to parse 'sequence_id': attempt to access JSON non-string as string",
        ),
        (
            r#"{"binary_data_output":1}"#,
            500,
            "Unable to parse 'binary_data_output': attempt to access JSON non-boolean as boolean",
        ),
        (r#"{"headers":"text","sequence_id":0,"priority":9,"timeout":1}"#, 200, ""),
        (r#"{"mine":1,"yours":"text","truth":false,"fraction":0.5}"#, 200, ""),
    ] {
        let response =
            infer("echo", &format!(r#"{{"parameters":{parameters},"inputs":[{INPUT}]}}"#));
        assert_eq!(
            (response.status, response.status == 200 || response.error_text() == text),
            (status, true),
            "{}",
            response.text()
        );
    }
}
