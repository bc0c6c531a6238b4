//! Malformed inference requests of v2 over HTTP, in JSON and in binary sections: each is refused
//! with its status and message.

use super::{Malformed, SERVER, assert_all_refused};
use trtserver_tests::http1::request;

const LENGTH: &str = "Inference-Header-Content-Length";

fn v2(what: &'static str, model: &str, json: &str, code: &'static [u16], says: &str) -> Malformed {
    let path = format!("/v2/models/{model}/infer");
    Malformed {
        what,
        bytes: request("POST", &path, &[], json.as_bytes()),
        codes: code,
        says: says.into(),
    }
}

/// JSON followed by binary sections.
fn v2_binary(what: &'static str, model: &str, json: &str, tail: &[u8], says: &str) -> Malformed {
    let path = format!("/v2/models/{model}/infer");
    let body = [json.as_bytes(), tail].concat();
    let bytes = request("POST", &path, &[(LENGTH, &json.len().to_string())], &body);
    Malformed { what, bytes, codes: &[400], says: says.into() }
}

pub fn input(name: &str, datatype: &str, shape: &str, data: &str) -> String {
    format!(r#"{{"name":"{name}","datatype":"{datatype}","shape":{shape},"data":{data}}}"#)
}

pub fn inputs(list: &[String]) -> String {
    format!(r#"{{"inputs":[{}]}}"#, list.join(","))
}

const ONES: &str = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";

/// Requests that v2 refuses.
pub fn requests() -> Vec<Malformed> {
    let good = input("INPUT0", "FP32", "[1,2]", "[1,2]");
    let a = input("INPUT0", "FP32", "[1,16]", ONES);
    let b = input("INPUT1", "FP32", "[1,16]", ONES);
    let with = |more: &str| format!(r#"{{"inputs":[{good}]{more}}}"#);
    let one =
        |datatype: &str, shape: &str, data: &str| inputs(&[input("INPUT0", datatype, shape, data)]);
    let sized = |shape: &str, size: &str| {
        format!(
            r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":{shape},"parameters":{{"binary_data_size":{size}}}}}]}}"#
        )
    };
    let strings =
        |shape: &str, size: usize| sized(shape, &size.to_string()).replace("FP32", "BYTES");
    let deep = one("FP32", "[1,2]", &format!("{}1,2{}", "[".repeat(101), "]".repeat(101)));
    let abyss = format!(r#"{{"inputs":{}"#, "[".repeat(200_000));
    let id = "[request id: <id_unknown>] ";
    vec![
        v2(
            "unknown model",
            "absent",
            &with(""),
            &[404],
            "Request for unknown model: 'absent' is not found",
        ),
        v2(
            "unknown version",
            "echo/versions/7",
            &with(""),
            &[404],
            "Request for unknown model: 'echo' version 7 is not found",
        ),
        v2(
            "version beyond all numbers",
            "echo/versions/99999999999999999999",
            &with(""),
            &[400, 404],
            "",
        ),
        v2(
            "unknown input",
            "echo",
            &inputs(&[input("INPUT9", "FP32", "[1,2]", "[1,2]")]),
            &[400],
            "INPUT9",
        ),
        v2(
            "unknown output",
            "echo",
            &with(r#","outputs":[{"name":"OUTPUT9"}]"#),
            &[400],
            "unexpected inference output 'OUTPUT9' for model 'echo'",
        ),
        v2(
            "missing input",
            "addsub_fp32",
            &inputs(std::slice::from_ref(&a)),
            &[400],
            "missing required input(s) ['INPUT1']",
        ),
        v2(
            "no inputs",
            "addsub_fp32",
            &inputs(&[]),
            &[400],
            "Got input(s) [], but missing required input(s) ['INPUT0','INPUT1']",
        ),
        v2(
            "duplicated input",
            "addsub_fp32",
            &inputs(&[a.clone(), a.clone()]),
            &[400],
            "input 'INPUT0' already exists in request",
        ),
        v2(
            "output requested in two forms",
            "echo",
            &with(
                r#","outputs":[{"name":"OUTPUT0"},{"name":"OUTPUT0","parameters":{"binary_data":true}}]"#,
            ),
            &[400],
            "output 'OUTPUT0' already exists in request",
        ),
        v2(
            "wrong type",
            "echo",
            &one("INT32", "[1,2]", "[1,2]"),
            &[400],
            "inference input 'INPUT0' data-type is 'INT32', but model 'echo' expects 'FP32'",
        ),
        v2("unknown type", "echo", &one("FP99", "[1,2]", "[1,2]"), &[400, 500], ""),
        v2(
            "no shape",
            "echo",
            r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","data":[1]}]}"#,
            &[400, 500],
            "shape",
        ),
        v2(
            "empty shape",
            "echo",
            &one("FP32", "[]", "[1]"),
            &[400],
            "input 'INPUT0' has no shape but model requires batch dimension for 'echo'",
        ),
        v2(
            "wrong shape",
            "addsub_fp32",
            &inputs(&[input("INPUT0", "FP32", "[1,15]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), b]),
            &[400],
            "unexpected shape for input 'INPUT0' for model 'addsub_fp32'. Expected [-1,16], got [1,15].",
        ),
        v2("negative shape", "echo", &one("FP32", "[1,-2]", "[1,2]"), &[400, 500], "shape"),
        v2("shape of fractions", "echo", &one("FP32", "[1,2.0]", "[1,2]"), &[500], "shape"),
        v2("shape of text", "echo", &one("FP32", "\"[1,2]\"", "[1,2]"), &[400, 500], "shape"),
        v2(
            "shape beyond all memory",
            "echo",
            &one("FP32", "[1,9223372036854775807]", "[1,2]"),
            &[400, 500],
            "",
        ),
        v2(
            "shape that overflows",
            "echo",
            &one("FP32", "[8,4611686018427387904,4611686018427387904]", "[1]"),
            &[400, 500],
            "",
        ),
        v2(
            "batch too large",
            "echo",
            &one("FP32", "[9,1]", "[1,2,3,4,5,6,7,8,9]"),
            &[400],
            &format!("{id}inference request batch-size must be <= 8 for 'echo'"),
        ),
        v2("batch of 0", "echo", &one("FP32", "[0,2]", "[]"), &[400], ""),
        v2(
            "too few values",
            "echo",
            &one("FP32", "[1,3]", "[1,2]"),
            &[500],
            "Failed to parse 'data' field: shape does not match true shape",
        ),
        v2(
            "too many values",
            "echo",
            &one("FP32", "[1,2]", "[1,2,3]"),
            &[500],
            "Unable to parse 'data': Shape does not match true shape of 'data' field",
        ),
        v2("values of another kind", "echo", &one("FP32", "[1,2]", "[\"1\",\"2\"]"), &[500], ""),
        v2(
            "a fraction for an integer",
            "identity_int32",
            &one("INT32", "[1,1]", "[1.0]"),
            &[500],
            "",
        ),
        v2(
            "a number for a truth",
            "identity_bool",
            &one("BOOL", "[1,1]", "[1]"),
            &[500],
            "attempt to access JSON non-boolean as boolean",
        ),
        v2(
            "a text for a half float",
            "identity_fp16",
            &one("FP16", "[1,1]", "[\"1\"]"),
            &[500],
            "attempt to access JSON non-number as double",
        ),
        v2("nested too deep", "echo", &deep, &[400, 500], ""),
        v2("nested without end", "echo", &abyss, &[400, 500], ""),
        v2("no JSON", "echo", "{\"inputs\":[", &[500], "failed to parse the request JSON buffer"),
        // An empty body is a raw tensor of no bytes, as after a JSON part of length 0.
        v2("nothing", "echo", " ", &[500], "The document is empty."),
        v2(
            "something behind the JSON",
            "echo",
            &format!("{} x", with("")),
            &[500],
            "failed to parse the request JSON buffer",
        ),
        v2("JSON of another kind", "echo", "[1,2]", &[400, 500], ""),
        v2("inputs of another kind", "echo", r#"{"inputs":{}}"#, &[400, 500], "inputs"),
        v2("input of another kind", "echo", r#"{"inputs":[1]}"#, &[400, 500], ""),
        v2(
            "no data",
            "echo",
            r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2]}]}"#,
            &[400],
            "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But no field is set",
        ),
        Malformed {
            what: "a name that is not UTF-8",
            bytes: request(
                "POST",
                "/v2/models/echo/infer",
                &[],
                b"{\"inputs\":[{\"name\":\"\xff\xfe\"}]}",
            ),
            codes: &[400, 500],
            says: String::new(),
        },
        v2(
            "shared memory",
            "echo",
            r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":8}}]}"#,
            &[400, 404, 501],
            "",
        ),
        v2_binary(
            "bytes cut short",
            "echo",
            &sized("[1,2]", "8"),
            &[0; 7],
            "unexpected size for input 'INPUT0', expecting 1 additional bytes for model 'echo'",
        ),
        v2_binary(
            "bytes left over",
            "echo",
            &sized("[1,2]", "8"),
            &[0; 9],
            "unexpected additional input data for model 'echo'",
        ),
        v2_binary(
            "size that is not the shape's",
            "echo",
            &sized("[1,2]", "4"),
            &[0; 4],
            &format!(
                "{id}input byte size mismatch for input 'INPUT0' for model 'echo'. Expected 8, got 4"
            ),
        ),
        v2_binary(
            "size beyond all memory",
            "echo",
            &sized("[1,2]", "18446744073709551615"),
            &[0; 8],
            "",
        ),
        v2_binary(
            "string cut short",
            "identity_string",
            &strings("[1,1]", 7),
            b"\x09\0\0\0abc",
            "INPUT0",
        ),
        v2_binary(
            "length of a string cut short",
            "identity_string",
            &strings("[1,1]", 2),
            b"\x01\0",
            "expecting 4 bytes but only 2 bytes available",
        ),
        v2_binary(
            "string longer than memory",
            "identity_string",
            &strings("[1,1]", 8),
            b"\xff\xff\xff\xff\0\0\0\0",
            "INPUT0",
        ),
        v2_binary(
            "too few strings",
            "identity_string",
            &strings("[1,3]", 8),
            &[0; 8],
            "expected 3 string elements for inference input 'INPUT0' for model 'identity_string', got 2",
        ),
        v2_binary(
            "too many strings",
            "identity_string",
            &strings("[1,1]", 8),
            &[0; 8],
            "unexpected number of string elements 2 for inference input 'INPUT0' for model 'identity_string', expecting 1",
        ),
        v2_binary(
            "strings beyond all memory",
            "identity_string",
            &strings("[1,9223372036854775807]", 8),
            &[0; 8],
            "",
        ),
        Malformed {
            what: "header length that is not a number",
            bytes: request("POST", "/v2/models/echo/infer", &[(LENGTH, "many")], b"{}"),
            codes: &[400],
            // A raw binary request.
            says: "input byte size mismatch for input 'INPUT0' for model 'echo'. Expected 0, got 2"
                .into(),
        },
        Malformed {
            what: "header length beyond the body",
            bytes: request("POST", "/v2/models/echo/infer", &[(LENGTH, "99")], b"{}"),
            codes: &[400],
            says: "inference header size should be in range (0, 2), got: 99".into(),
        },
        Malformed {
            what: "negative header length",
            bytes: request("POST", "/v2/models/echo/infer", &[(LENGTH, "-1")], b"{}"),
            codes: &[400],
            says: "inference header size should be in range (0, 2), got: -1".into(),
        },
        Malformed {
            what: "compressed body that is not compressed",
            bytes: request("POST", "/v2/models/echo/infer", &[("Content-Encoding", "gzip")], b"{}"),
            codes: &[400, 500],
            says: String::new(),
        },
    ]
}

#[test]
fn v2_requests_are_refused() {
    assert_all_refused(&SERVER, &requests(), false);
}
