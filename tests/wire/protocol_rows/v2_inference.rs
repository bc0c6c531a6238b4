//! docs/protocol/v2.md §2.5 to 2.13, 2.19: inference in JSON, binary sections and raw bodies,
//! statistics, generate.

use super::SERVER;
use serde_json::json;
use trtserver_tests::Response;

fn infer(model: &str, json: &str) -> Response {
    SERVER.post(&format!("/v2/models/{model}/infer"), &[], json)
}

#[track_caller]
fn refused(response: &Response, status: u16, text: &str) {
    assert_eq!((response.status, response.error_text().as_str()), (status, text));
}

fn input(datatype: &str, shape: &str, more: &str) -> String {
    format!(r#"{{"name":"INPUT0","datatype":"{datatype}","shape":{shape}{more}}}"#)
}

/// Data sources of an input and kinds of an output that exclude each other.
#[test]
fn data_sources() {
    let only = "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', \
                'shared_memory_region' in 'parameters'.";
    for (more, set) in [
        ("", " But no field is set"),
        (
            r#","data":[1,2],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":8}"#,
            " But set 'data' 'shared_memory_region'",
        ),
        (
            r#","parameters":{"binary_data_size":8,"shared_memory_region":"r","shared_memory_byte_size":8}"#,
            " But set 'binary_data_size' 'shared_memory_region'",
        ),
    ] {
        let json = format!(r#"{{"inputs":[{}]}}"#, input("FP32", "[1,2]", more));
        refused(&infer("echo", &json), 400, &format!("{only}{set}"));
    }
    let outputs = |parameters: &str| {
        let input = input("FP32", "[1,2]", r#","data":[1,2]"#);
        infer(
            "echo",
            &format!(
                r#"{{"inputs":[{input}],"outputs":[{{"name":"OUTPUT0","parameters":{{"shared_memory_region":"r","shared_memory_byte_size":8,{parameters}}}}}]}}"#
            ),
        )
    };
    let text = "Output can't set both 'shared_memory_region' and";
    refused(&outputs(r#""classification":1"#), 400, &format!("{text} 'classification'"));
    refused(&outputs(r#""binary_data":true"#), 400, &format!("{text} 'binary_data'"));
}

/// Sizes that no memory has, and values that no type has.
#[test]
fn shapes_and_values() {
    let nested = format!("{}1{}", "[".repeat(102), "]".repeat(102));
    for (model, datatype, shape, data, status, text) in [
        (
            "echo",
            "FP32",
            "[1,1]",
            nested.as_str(),
            400,
            "JSON nesting depth exceeds maximum allowed limit (100)",
        ),
        (
            "echo",
            "FP32",
            "[4611686018427387904,4]",
            "[1]",
            400,
            "invalid shape for input 'INPUT0': shape [4611686018427387904,4] causes total element count to exceed maximum \
             size of 9223372036854775807",
        ),
        (
            "echo",
            "FP32",
            "[1,4611686018427387904]",
            "[1]",
            400,
            "byte size overflow for input 'INPUT0': element count (4611686018427387904) * data type size (4) exceeds \
             maximum allowed size (9223372036854775807)",
        ),
        (
            "identity_uint8",
            "UINT8",
            "[1,1]",
            "[-1]",
            500,
            "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            "identity_int32",
            "INT32",
            "[1,1]",
            "[1.0]",
            500,
            "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            "identity_string",
            "BYTES",
            "[1,1]",
            "[1]",
            500,
            "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
        ),
    ] {
        let data = format!(r#","data":{data}"#);
        let json = format!(r#"{{"inputs":[{}]}}"#, input(datatype, shape, &data));
        refused(&infer(model, &json), status, text);
    }
    // A dimension of 0: no data is read.
    let json = format!(r#"{{"inputs":[{}]}}"#, input("FP32", "[1,0]", r#","data":[]"#));
    let response = infer("identity_fp32", &json);
    assert_eq!(response.json()["outputs"][0]["data"], json!([]), "{}", response.text());
    // A section of 0 bytes: neither header nor octets.
    let json = format!(
        r#"{{"inputs":[{}],"outputs":[{{"name":"OUTPUT0","parameters":{{"binary_data":true}}}}]}}"#,
        input("FP32", "[1,0]", r#","data":[]"#)
    );
    let response = infer("identity_fp32", &json);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("inference-header-content-length"), None);
    assert_eq!(response.json()["outputs"][0]["parameters"], json!({"binary_data_size": 0}));
    // Tokens and integers that a float accepts.
    for (data, printed) in
        [("Inf,-Inf,1", "Infinity,-Infinity,1.0"), ("1,2e2,-0.5", "1.0,200.0,-0.5")]
    {
        let data = format!(r#","data":[{data}]"#);
        let json = format!(r#"{{"inputs":[{}]}}"#, input("FP32", "[1,3]", &data));
        let text = infer("identity_fp32", &json).text();
        assert!(text.contains(&format!(r#""data":[{printed}]"#)), "{text}");
    }
}

/// The body of a request that names no input.
#[test]
fn raw_bodies() {
    let raw = |model: &str, body: &[u8]| {
        let headers = [("Inference-Header-Content-Length", "0")];
        SERVER.post(&format!("/v2/models/{model}/infer"), &headers, body)
    };
    let two = raw("nonzero", &[0; 16]);
    let text = "The shape of the raw input 'INPUT0' can not be deduced because there are more than one variable-sized dimension";
    assert!(two.status == 400 && two.error_text().ends_with(text), "{}", two.text());
    let odd = raw("echo", &[0; 7]);
    assert_eq!(odd.status, 400, "{}", odd.text());
    let empty = raw("echo", &[]);
    assert_eq!(empty.status, 200, "{}", empty.text());
}

/// The strings of the classification extension.
#[test]
fn classification() {
    let outputs = |count: &str| {
        format!(
            r#"{{"inputs":[{}],"outputs":[{{"name":"OUTPUT0","parameters":{{"classification":{count}}}}}]}}"#,
            input("FP32", "[1,5]", r#","data":[1,5,2,5,3]"#)
        )
    };
    let response = infer("classes", &outputs("3"));
    let output = &response.json()["outputs"][0];
    assert_eq!((&output["datatype"], &output["shape"]), (&json!("BYTES"), &json!([1, 3])));
    assert_eq!(output["data"], json!(["5.000000:1:green", "5.000000:3", "3.000000:4"]), "{output}");
    for count in ["-1", "\"2\""] {
        let response = infer("classes", &outputs(count));
        assert_eq!(response.status, 500, "{count}: {}", response.text());
    }
    // 0 requests the tensor.
    let response = infer("classes", &outputs("0"));
    assert_eq!(response.json()["outputs"][0]["datatype"], "FP32", "{}", response.text());
    let wide = r#"{"inputs":[{"name":"INPUT0","datatype":"INT8","shape":[1,1000001],"parameters":{"binary_data_size":1000001}}],"outputs":[{"name":"OUTPUT0","parameters":{"classification":1}}]}"#;
    let body = [wide.as_bytes(), &vec![0; 1_000_001]].concat();
    let length = wide.len().to_string();
    let headers = [("Inference-Header-Content-Length", length.as_str())];
    let response = SERVER.post("/v2/models/identity_int8/infer", &headers, body);
    refused(&response, 400, "classification output tensor too large");
}

/// What counts in the statistics of a version.
#[test]
fn statistics() {
    let stats = || {
        let all = SERVER.get("/v2/models/addsub_int16/versions/1/stats").json();
        all["model_stats"][0].clone()
    };
    let data = vec!["1"; 32].join(",");
    let tensor = |name: &str| {
        format!(r#"{{"name":"{name}","datatype":"INT16","shape":[2,16],"data":[{data}]}}"#)
    };
    let good = format!(r#"{{"inputs":[{},{}]}}"#, tensor("INPUT0"), tensor("INPUT1"));
    assert_eq!(infer("addsub_int16", &good).status, 200);
    assert_eq!(infer("addsub_int16", &good).status, 200);
    let after = stats();
    assert_eq!((&after["inference_count"], &after["execution_count"]), (&json!(4), &json!(2)));
    let durations = &after["inference_stats"];
    for key in ["success", "queue", "compute_input", "compute_infer", "compute_output"] {
        assert_eq!(durations[key]["count"], 2, "{key}: {after}");
    }
    for key in ["fail", "cache_hit", "cache_miss"] {
        assert_eq!(durations[key], json!({"count": 0, "ns": 0}), "{key}: {after}");
    }
    assert_eq!(after["batch_stats"][0]["batch_size"], 2, "{after}");
    assert_eq!(after["batch_stats"][0]["compute_infer"]["count"], 2, "{after}");
    assert!(after["last_inference"].as_u64().is_some_and(|ms| ms > 1_600_000_000_000), "{after}");
}

/// Shapes that generate derives, and requests that it refuses.
#[test]
fn generate() {
    let post =
        |model: &str, json: &str| SERVER.post(&format!("/v2/models/{model}/generate"), &[], json);
    // Fixed dimensions divide the number of elements; the innermost variable one takes the rest.
    let response = post(
        "addsub_fp32",
        &format!(r#"{{"INPUT0":[{0}],"INPUT1":[{0}]}}"#, vec!["1"; 32].join(",")),
    );
    assert_eq!(
        response.json()["OUTPUT0"].as_array().map(Vec::len),
        Some(32),
        "{}",
        response.text()
    );
    let text = "The schema can not convert input 'INPUT0' to tensor with proper shape";
    refused(&post("addsub_fp32", r#"{"INPUT0":[1,2,3],"INPUT1":[1]}"#), 400, text);
    let wrong = post("echo", r#"{"INPUT0":"text"}"#);
    assert_eq!(wrong.status, 500, "{}", wrong.text());
    let missing = post("echo", "{}");
    assert!(
        missing.status == 400 && missing.error_text().contains("missing required input(s)"),
        "{}",
        missing.text()
    );
    let twice = post("echo", r#"{"INPUT0":1,"parameters":{"INPUT0":1}}"#);
    assert!(
        twice.error_text().contains("input 'INPUT0' already exists in request"),
        "{}",
        twice.text()
    );
}
