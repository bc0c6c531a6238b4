//! Nothing a client sends may crash, hang or leak: wrong requests byte by byte, and what is left of them.

use std::sync::LazyLock;
use trtserver_tests::http1::request;
use trtserver_tests::{Response, Running, Server, every_model, inference, probe};

static SERVER: LazyLock<Running> = LazyLock::new(|| every_model().start_shared());

const LENGTH: &str = "Inference-Header-Content-Length";

/// A request and what must come of it.
struct Bad {
    what: &'static str,
    bytes: Vec<u8>,
    /// None of them is a crime of the server's: the codes a refusal may have.
    codes: &'static [u16],
    /// A part of the words.
    says: String,
}

fn v1(what: &'static str, path: &str, header: &str, body: &[u8], says: &str) -> Bad {
    let bytes =
        request("POST", &format!("/api/infer/{path}"), &[("NV-InferRequest", header)], body);
    Bad { what, bytes, codes: &[400], says: says.into() }
}

fn v2(what: &'static str, model: &str, json: &str, code: &'static [u16], says: &str) -> Bad {
    let path = format!("/v2/models/{model}/infer");
    Bad {
        what,
        bytes: request("POST", &path, &[], json.as_bytes()),
        codes: code,
        says: says.into(),
    }
}

/// JSON, then bytes.
fn v2_binary(what: &'static str, model: &str, json: &str, tail: &[u8], says: &str) -> Bad {
    let path = format!("/v2/models/{model}/infer");
    let body = [json.as_bytes(), tail].concat();
    let bytes = request("POST", &path, &[(LENGTH, &json.len().to_string())], &body);
    Bad { what, bytes, codes: &[400], says: says.into() }
}

/// Bytes that are not even a request.
fn raw(what: &'static str, bytes: impl Into<Vec<u8>>, codes: &'static [u16]) -> Bad {
    Bad { what, bytes: bytes.into(), codes, says: String::new() }
}

fn input(name: &str, datatype: &str, shape: &str, data: &str) -> String {
    format!(r#"{{"name":"{name}","datatype":"{datatype}","shape":{shape},"data":{data}}}"#)
}

fn inputs(list: &[String]) -> String {
    format!(r#"{{"inputs":[{}]}}"#, list.join(","))
}

const ONES: &str = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";

/// What the protocol of 2019 refuses.
fn v1_refusals() -> Vec<Bad> {
    let echo = r#"batch_size: 1 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;
    let two = r#"batch_size: 1 input { name: "INPUT0" dims: 16 } input { name: "INPUT1" dims: 16 } output { name: "OUTPUT0" }"#;
    let text = r#"batch_size: 1 input { name: "INPUT0" dims: 2 batch_byte_size: SIZE } output { name: "OUTPUT0" }"#;
    let strings = |size: &str| text.replace("SIZE", size);
    let deep = format!("batch_size: 1 {} {}", "input {".repeat(5000), "}".repeat(5000));
    let missing = "expected 2 inputs but got 1 inputs for model 'addsub_fp32'";
    vec![
        v1("unknown model", "nobody", echo, &[0; 8], "unknown model"),
        v1("unknown version", "echo/7", echo, &[0; 8], "unknown model"),
        v1("version beyond all numbers", "echo/99999999999999999999", echo, &[0; 8], ""),
        v1(
            "unknown input",
            "echo",
            &echo.replace("INPUT0", "INPUT9"),
            &[0; 8],
            "unexpected inference input 'INPUT9' for model 'echo'",
        ),
        v1("unknown output", "echo", &echo.replace("OUTPUT0", "OUTPUT9"), &[0; 8], "OUTPUT9"),
        v1(
            "missing input",
            "addsub_fp32",
            r#"batch_size: 1 input { name: "INPUT0" dims: 16 } output { name: "OUTPUT0" }"#,
            &[0; 64],
            missing,
        ),
        v1("duplicated input", "addsub_fp32", &two.replace("INPUT1", "INPUT0"), &[0; 128], "INPUT"),
        v1(
            "batch of 0",
            "echo",
            &echo.replace("batch_size: 1", "batch_size: 0"),
            &[],
            "inference request batch-size must be >= 1 for 'echo'",
        ),
        v1(
            "batch too large",
            "echo",
            &echo.replace("batch_size: 1", "batch_size: 9"),
            &[0; 72],
            "inference request batch-size must be <= 8 for 'echo'",
        ),
        v1(
            "batch of a model without batches",
            "addsub_fp32_nobatch",
            &two.replace("batch_size: 1", "batch_size: 2"),
            &[0; 256],
            "inference request batch-size must be <= 0 for 'addsub_fp32_nobatch'",
        ),
        v1(
            "huge batch",
            "echo",
            &echo.replace("batch_size: 1", "batch_size: 4294967295"),
            &[0; 8],
            "inference request batch-size must be <= 8 for 'echo'",
        ),
        v1(
            "wrong shape",
            "addsub_fp32",
            &two.replacen("dims: 16", "dims: 15", 1),
            &[0; 124],
            "unexpected shape for input 'INPUT0' for model 'addsub_fp32'",
        ),
        v1(
            "too many dimensions",
            "echo",
            &echo.replace("dims: 2", "dims: [1, 2]"),
            &[0; 8],
            "unexpected shape for input 'INPUT0' for model 'echo'",
        ),
        v1(
            "no shape where it varies",
            "echo",
            &echo.replace("dims: 2", ""),
            &[0; 8],
            "model supports variable-size for input 'INPUT0', request must specify input shape for model 'echo'",
        ),
        v1(
            "negative shape",
            "echo",
            &echo.replace("dims: 2", "dims: -2"),
            &[0; 8],
            "unexpected shape for input 'INPUT0'",
        ),
        v1(
            "shape beyond all memory",
            "echo",
            &echo.replace("dims: 2", "dims: 9223372036854775807"),
            &[0; 8],
            "",
        ),
        v1(
            "shape whose bytes overflow to 8",
            "echo",
            &echo.replace("dims: 2", "dims: 4611686018427387906"),
            &[0; 8],
            "",
        ),
        v1(
            "wrong byte size",
            "echo",
            &echo.replace("dims: 2", "dims: 2 batch_byte_size: 9"),
            &[0; 9],
            "specific batch-byte-size for input 'INPUT0' does not match expected byte-size calculated from shape and datatype for model 'echo'",
        ),
        v1("body too short", "echo", echo, &[0; 7], "unexpected size for input 'INPUT0'"),
        v1(
            "body too long",
            "echo",
            echo,
            &[0; 9],
            "unexpected additional input data for model 'echo'",
        ),
        v1("no body", "echo", echo, &[], "INPUT0"),
        v1(
            "empty header",
            "echo",
            "",
            &[0; 8],
            "inference request batch-size must be >= 1 for 'echo'",
        ),
        v1(
            "header that is no text of protobuf",
            "echo",
            "{]}",
            &[0; 8],
            "unable to parse request for model 'echo'",
        ),
        v1(
            "unknown field",
            "echo",
            &format!("{echo} colour: 3"),
            &[0; 8],
            "unable to parse request for model 'echo'",
        ),
        v1(
            "wrong type of a field",
            "echo",
            "batch_size: \"one\"",
            &[0; 8],
            "unable to parse request for model 'echo'",
        ),
        v1(
            "number out of range",
            "echo",
            "batch_size: 4294967296",
            &[0; 8],
            "unable to parse request for model 'echo'",
        ),
        v1(
            "unclosed brace",
            "echo",
            "batch_size: 1 input { name: \"INPUT0\"",
            &[0; 8],
            "unable to parse request for model 'echo'",
        ),
        v1(
            "unclosed quote",
            "echo",
            "batch_size: 1 input { name: \"INPUT0 }",
            &[0; 8],
            "unable to parse request for model 'echo'",
        ),
        v1(
            "nested without end",
            "echo",
            &deep,
            &[0; 8],
            "unable to parse request for model 'echo'",
        ),
        v1(
            "string without a size",
            "identity_string",
            &strings("0"),
            &[0; 8],
            "batch-byte-size must be specified for input 'INPUT0' with non-fixed-size datatype for model 'identity_string'",
        ),
        v1("string cut short", "identity_string", &strings("7"), b"\x09\0\0\0abc", "INPUT0"),
        v1(
            "length of a string cut short",
            "identity_string",
            &strings("7"),
            b"\x01\0\0\0a\x01\0",
            "INPUT0",
        ),
        v1(
            "string longer than memory",
            "identity_string",
            &strings("8"),
            b"\xff\xff\xff\xff\0\0\0\0",
            "INPUT0",
        ),
        v1("one string too many", "identity_string", &strings("12"), &[0; 12], "INPUT0"),
        v1(
            "strings beyond all memory",
            "identity_string",
            &strings("18446744073709551615"),
            &[0; 8],
            "INPUT0",
        ),
        v1(
            "classes of text",
            "identity_string",
            &strings("8").replace("\"OUTPUT0\"", "\"OUTPUT0\" cls { count: 1 }"),
            &[0; 8],
            "class result not available for output 'OUTPUT0' due to unsupported type 'TYPE_STRING'",
        ),
        v1("a version that is no number", "echo/one", echo, &[0; 8], ""),
    ]
}

/// What the Open Inference Protocol refuses.
fn v2_refusals() -> Vec<Bad> {
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
            "nobody",
            &with(""),
            &[404],
            "Request for unknown model: 'nobody' is not found",
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
            "duplicated output",
            "echo",
            &with(r#","outputs":[{"name":"OUTPUT0"},{"name":"OUTPUT0"}]"#),
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
            "Unable to parse 'data': Shape does not match true shape of 'data' field",
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
            "half floats in JSON",
            "identity_fp16",
            &one("FP16", "[1,1]", "[1]"),
            &[400],
            "receiving FP16 data via JSON is not supported. Please use the binary data format for input INPUT0",
        ),
        v2("nested too deep", "echo", &deep, &[400, 500], ""),
        v2("nested without end", "echo", &abyss, &[400, 500], ""),
        v2("no JSON", "echo", "{\"inputs\":[", &[500], "failed to parse the request JSON buffer"),
        // Nothing at all is a tensor of no bytes, as after a JSON part of length 0.
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
        Bad {
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
        Bad {
            what: "header length that is no number",
            bytes: request("POST", "/v2/models/echo/infer", &[(LENGTH, "many")], b"{}"),
            codes: &[400],
            says: "Unable to parse Inference-Header-Content-Length, got: many".into(),
        },
        Bad {
            what: "header length beyond the body",
            bytes: request("POST", "/v2/models/echo/infer", &[(LENGTH, "99")], b"{}"),
            codes: &[400],
            says: "inference header size should be in range (0, 2), got: 99".into(),
        },
        Bad {
            what: "negative header length",
            bytes: request("POST", "/v2/models/echo/infer", &[(LENGTH, "-1")], b"{}"),
            codes: &[400],
            says: "inference header size should be in range (0, 2), got: -1".into(),
        },
        Bad {
            what: "compressed body that is not compressed",
            bytes: request("POST", "/v2/models/echo/infer", &[("Content-Encoding", "gzip")], b"{}"),
            codes: &[400, 500],
            says: String::new(),
        },
    ]
}

/// What is wrong before any protocol of ours is reached.
fn http_refusals() -> Vec<Bad> {
    let post = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n";
    let long = "x".repeat(1 << 20);
    vec![
        raw("no HTTP", "hello\r\n\r\n", &[400]),
        raw(
            "bytes of a terminal",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".as_slice(),
            &[400],
        ),
        raw("no path", "GET\r\n\r\n", &[400]),
        raw("a version that does not exist", "GET /v2 HTTP/9.9\r\n\r\n", &[400, 505]),
        raw("a header without a colon", "GET /v2 HTTP/1.1\r\nHost x\r\n\r\n", &[400]),
        raw("a NUL in a header", "GET /v2 HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", &[400]),
        raw("a length that is no number", format!("{post}Content-Length: ten\r\n\r\n{{}}"), &[400]),
        raw("a negative length", format!("{post}Content-Length: -1\r\n\r\n{{}}"), &[400]),
        raw(
            "a length beyond all numbers",
            format!("{post}Content-Length: 99999999999999999999\r\n\r\n{{}}"),
            &[400, 413],
        ),
        raw(
            "two lengths",
            format!("{post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"),
            &[400],
        ),
        raw(
            "a chunk size that is no number",
            format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"),
            &[400, 500],
        ),
        raw(
            "a chunk size beyond all numbers",
            format!(
                "{post}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{{}}\r\n0\r\n\r\n"
            ),
            &[400, 500],
        ),
        raw(
            "a chunk without its end",
            format!("{post}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}x\r\n0\r\n\r\n"),
            &[400, 500],
        ),
        raw(
            "a path of a megabyte",
            format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
            &[400, 404, 414, 431],
        ),
        raw(
            "a header of a megabyte",
            format!("{post}X: {long}\r\nContent-Length: 2\r\n\r\n{{}}"),
            &[400, 431, 500],
        ),
        raw(
            "a description of a megabyte",
            format!(
                "POST /api/infer/echo HTTP/1.1\r\nHost: x\r\nNV-InferRequest: batch_size: 1 {long}\r\nContent-Length: 8\r\n\r\n12345678"
            ),
            &[400, 431],
        ),
        raw(
            "ten thousand headers",
            format!("{post}{}Content-Length: 2\r\n\r\n{{}}", "X: y\r\n".repeat(10_000)),
            &[400, 431],
        ),
    ]
}

/// A request that must work after every one that must not.
fn assert_still_serves(server: &Running) {
    let response = server.infer("echo", "");
    assert_eq!(response.status, 200, "after that, a good request fails: {}", response.text());
}

/// Sends it on a connection of its own. The server may hang up on what is endless, but not on anything else.
fn send(server: &Running, bad: &Bad) -> Option<Response> {
    let mut connection = server.connect();
    connection.send(&bad.bytes).answer()
}

fn all_refused(server: &Running, list: &[Bad], may_hang_up: bool) {
    let mut wrong = Vec::new();
    for bad in list {
        match send(server, bad) {
            Some(response) => {
                let says = response.error_text().replace("\\'", "'");
                if !bad.codes.contains(&response.status) || !says.contains(&bad.says) {
                    wrong.push(format!(
                        "{}: {} {says:?}\n    wanted {:?} {:?}",
                        bad.what, response.status, bad.codes, bad.says
                    ));
                }
            }
            // Nobody reads a megabyte to its end only to refuse it.
            None if may_hang_up && bad.bytes.len() > 100_000 => {}
            None => wrong.push(format!("{}: hung up without a word", bad.what)),
        }
        assert_still_serves(server);
    }
    assert!(wrong.is_empty(), "{} of {}:\n  {}", wrong.len(), list.len(), wrong.join("\n  "));
}

#[test]
fn what_the_protocol_of_2019_refuses() {
    all_refused(&SERVER, &v1_refusals(), false);
}

#[test]
fn what_the_open_inference_protocol_refuses() {
    all_refused(&SERVER, &v2_refusals(), false);
}

#[test]
fn what_is_no_http() {
    all_refused(&SERVER, &http_refusals(), true);
}

#[test]
fn a_body_that_never_comes_holds_up_nobody() {
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let mut connection = SERVER.connect();
            connection.send(
                "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
            );
            connection
        })
        .collect();
    assert_still_serves(&SERVER);
    drop(waiting);
    assert_still_serves(&SERVER);
}

#[test]
fn a_body_that_ends_early() {
    let mut connection = SERVER.connect();
    connection
        .send("POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
    connection.finish();
    assert!(connection.answer().is_none_or(|response| response.status >= 400));
    assert_still_serves(&SERVER);
}

#[test]
fn half_a_request_line() {
    for part in ["", "G", "GET /v2", "GET /v2 HTTP/1.1\r\n", "GET /v2 HTTP/1.1\r\nHost: "] {
        let mut connection = SERVER.connect();
        connection.send(part).finish();
        assert!(connection.answer().is_none_or(|response| response.status == 400), "{part:?}");
    }
    assert_still_serves(&SERVER);
}

#[test]
fn a_body_beyond_the_limit() {
    let server =
        Server::new().model("echo", probe("echo", &[])).flag("--http-max-input-size=1000").start();
    let json = inputs(&[input("INPUT0", "FP32", "[1,2]", &format!("[1,2{}]", " ".repeat(2000)))]);
    let response = server.post("/v2/models/echo/infer", &[], &json);
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(response.error_text().contains("--http-max-input-size"), "{}", response.text());
    assert_still_serves(&server);
}

#[test]
fn a_small_body_that_grows_beyond_the_limit() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    assert_still_serves(&server);
    let before = server.resident_kib();
    // 100 MiB of blanks, in a hundred kilobytes: a stored file of the checkout would be larger than this line.
    let bomb = gzip_of_blanks(100 << 20);
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    for _ in 0..5 {
        let encoding = [("Content-Encoding", "gzip")];
        let response = server.post("/v2/models/echo/infer", &encoding, &bomb);
        assert_eq!(response.status, 400, "{}", response.text());
        assert!(response.error_text().contains("--http-max-input-size"), "{}", response.text());
    }
    assert_still_serves(&server);
    let after = server.resident_kib();
    assert!(after < before + (160 << 10), "resident memory grew from {before} KiB to {after} KiB");
}

/// That many blanks in the gzip format, packed by the program of that name.
fn gzip_of_blanks(count: usize) -> Vec<u8> {
    let script = format!("head -c {count} /dev/zero | tr '\\0' ' ' | gzip -c");
    let done = std::process::Command::new("sh").args(["-c", &script]).output();
    match done {
        Ok(done) if done.status.success() => done.stdout,
        other => panic!("gzip: {other:?}"),
    }
}

#[test]
fn a_client_that_hangs_up_cancels_what_it_asked_for() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    // The model waits for the cancellation, for ten seconds at most.
    server.connect().send(inference("echo", r#""until_cancelled":true"#));
    let canceled = r#"nv_inference_request_failure{model="echo",reason="CANCELED",version="1"}"#;
    assert_still_serves(&server);
    server.poll_until("it is cancelled", |server| server.metrics(canceled) >= Some(1.0));
}

#[test]
fn hundreds_of_connections_at_once() {
    let connections: Vec<_> = (0..400)
        .map(|_| {
            let mut connection = SERVER.connect();
            connection.send(inference("echo", ""));
            connection
        })
        .collect();
    for mut connection in connections {
        assert_eq!(connection.response().status, 200);
    }
}

#[test]
fn clients_that_hang_up_while_their_answer_is_made() {
    for _ in 0..3 {
        SERVER.connect().send(inference("slow", ""));
    }
    assert_still_serves(&SERVER);
    let response = SERVER.infer("slow", "");
    assert_eq!(response.status, 200, "{}", response.text());
}

#[test]
fn a_thousand_bad_requests_leave_nothing_behind() {
    let server = every_model().start();
    let bad: Vec<Bad> =
        [v1_refusals(), v2_refusals(), http_refusals()].into_iter().flatten().collect();
    let round = |times: usize| {
        for bad in bad.iter().cycle().take(times) {
            send(&server, bad);
        }
    };
    // Whatever is made once is made by now.
    round(500);
    let before = server.resident_kib();
    round(1000);
    let after = server.resident_kib();
    assert!(after < before + 4096, "resident memory grew from {before} KiB to {after} KiB");
    assert_still_serves(&server);
    // A request that was never answered would hold this up, and make the exit status 1.
    assert!(server.stop().success());
}
