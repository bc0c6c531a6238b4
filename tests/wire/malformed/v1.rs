//! Malformed inference requests of v1 over HTTP: each is refused with status 400 and the message
//! that clients match.

use super::{Malformed, SERVER, assert_all_refused};
use trtserver_tests::http1::request;

fn v1(what: &'static str, path: &str, header: &str, body: &[u8], says: &str) -> Malformed {
    let bytes =
        request("POST", &format!("/api/infer/{path}"), &[("NV-InferRequest", header)], body);
    Malformed { what, bytes, codes: &[400], says: says.into() }
}

/// Requests that v1 refuses.
pub fn requests() -> Vec<Malformed> {
    let echo = r#"batch_size: 1 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;
    let two = r#"batch_size: 1 input { name: "INPUT0" dims: 16 } input { name: "INPUT1" dims: 16 } output { name: "OUTPUT0" }"#;
    let text = r#"batch_size: 1 input { name: "INPUT0" dims: 2 batch_byte_size: SIZE } output { name: "OUTPUT0" }"#;
    let strings = |size: &str| text.replace("SIZE", size);
    let deep = format!("batch_size: 1 {} {}", "input {".repeat(5000), "}".repeat(5000));
    let missing = "expected 2 inputs but got 1 inputs for model 'addsub_fp32'";
    vec![
        v1("unknown model", "absent", echo, &[0; 8], "unknown model"),
        v1("unknown version", "echo/7", echo, &[0; 8], "unknown model"),
        v1("version beyond 64 bits", "echo/99999999999999999999", echo, &[0; 8], ""),
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
            "shape beyond memory",
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
            "header that is not protobuf text",
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
        v1("deeply nested", "echo", &deep, &[0; 8], "unable to parse request for model 'echo'"),
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
            "strings beyond memory",
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
        v1("a version that is not a number", "echo/one", echo, &[0; 8], ""),
    ]
}

#[test]
fn v1_requests_are_refused() {
    assert_all_refused(&SERVER, &requests(), false);
}
