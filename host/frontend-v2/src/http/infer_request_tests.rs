//! Requests as JSON text, and how they are read.

use super::*;
use trtserver_base::error::Code;
use trtserver_request::{CorrelationId, DType, ParameterValue, TensorSpec};
use trtserver_wire::regions::SHARED_MEMORY_DISABLED;

fn signature(inputs: &[(&str, DType, &[i64])], max_batch_size: u32) -> ModelSignature {
    let spec = |name: &str, dtype, dims: &[i64]| TensorSpec::new(name, dtype, dims);
    ModelSignature {
        model: "m".into(),
        max_batch_size,
        inputs: inputs.iter().map(|(n, t, d)| spec(n, *t, d)).collect(),
        outputs: vec![spec("O", DType::Fp32, &[2]), spec("P", DType::Fp32, &[2])],
        ..Default::default()
    }
}

fn read(json: &str, tail: &[u8]) -> Result<(UncheckedRequest, ResponseSpec)> {
    let signature =
        Arc::new(signature(&[("A", DType::Int8, &[2]), ("S", DType::String, &[-1])], 0));
    let body = Bytes::from([json.as_bytes(), tail].concat());
    read_infer_request(&signature, &body, json.len(), 10_000, RequestRegions::DISABLED)
}

#[test]
fn request_with_every_member() {
    let (unchecked, spec) = read(
        r#" {"id":"7","parameters":{"sequence_id":"x","sequence_start":true,"priority":2,"timeout":3,
            "binary_data_output":true,"mine":-1,"yours":0.5,"theirs":"t","ours":false},
            "inputs":[{"name":"S","datatype":"BYTES","shape":[2],"data":["a\u00fc",""]},
                      {"name":"A","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}],
            "outputs":[{"name":"P","parameters":{"binary_data":true}},
                       {"name":"O","parameters":{"classification":3}}],"unknown":[{}]} "#,
        &[5, 6],
    )
    .unwrap();
    assert_eq!(unchecked.id, "7");
    let p = &unchecked.parameters;
    assert_eq!(p.sequence.id, CorrelationId::Text("x".into()));
    assert_eq!((p.sequence.start, p.priority, p.timeout_us), (true, 2, 3));
    let custom: Vec<_> = p.custom.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
    assert_eq!(
        custom,
        [
            ("mine", ParameterValue::Int(-1)),
            ("yours", ParameterValue::Double(0.5)),
            ("theirs", ParameterValue::String("t".into())),
            ("ours", ParameterValue::Bool(false)),
        ]
    );
    assert_eq!(*unchecked.inputs[0].data.payload(), &b"\x03\0\0\0a\xc3\xbc\0\0\0\0"[..]);
    assert_eq!(
        (unchecked.inputs[1].index, unchecked.inputs[1].data.payload().as_ref()),
        (0, &[5u8, 6][..])
    );
    assert_eq!(
        unchecked.outputs.iter().map(|w| (w.index(), w.classes)).collect::<Vec<_>>(),
        [(1, 0), (0, 3)]
    );
    assert!(spec.binary && spec.outputs[0].binary && !spec.outputs[1].binary);
}

#[test]
fn invalid_requests_are_refused() {
    let a = r#""name":"A","datatype":"INT8","shape":[2]"#;
    let one = |rest: &str| format!(r#"{{"inputs":[{{{a}{rest}}}]}}"#);
    let x = r#"{"name":"X","shape":[1],"datatype":"INT8","data":[1]}"#;
    let out = |output: &str| format!(r#"{{"inputs":[],"outputs":[{output}]}}"#);
    let source = "Input must set only one of the following fields: 'data', 'binary_data_size' in \
                  'parameters', 'shared_memory_region' in 'parameters'. But ";
    use Code::*;
    let table: Vec<(String, &[u8], Code, String)> = vec![
        ("".into(), b"", Internal, "failed to parse the request JSON buffer: The document is empty. at 0".into()),
        ("{".into(), b"", Internal, "failed to parse the request JSON buffer: Missing a name for object member. at 1".into()),
        ("[]".into(), b"", Internal, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'".into()),
        ("{}".into(), b"", Internal, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'".into()),
        (r#"{"inputs":[7]}"#.into(), b"", InvalidArg, format!("{source}no field is set")),
        (r#"{"inputs":[{"data":[]}]}"#.into(), b"", Internal, "Unable to parse 'name': attempt to access non-existing object member 'name'".into()),
        (r#"{"parameters":[],"inputs":[]}"#.into(), b"", Internal, "failed to get request params.: attempt to get members for non-object".into()),
        (r#"{"parameters":{"sequence_id":-1},"inputs":[]}"#.into(), b"", Internal, "Unable to parse 'sequence_id': attempt to access JSON non-string as string".into()),
        (out(r#""O""#), b"", Internal, "Unable to parse 'name': attempt to access non-existing object member 'name'".into()),
        (out(r#"{"name":"O","parameters":{"classification":"1"}}"#), b"", Internal, "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer".into()),
        (one(""), b"", InvalidArg, format!("{source}no field is set")),
        (
            one(r#","data":[1,2],"parameters":{"binary_data_size":2}"#),
            b"",
            InvalidArg,
            format!("{source}set 'data' 'binary_data_size'"),
        ),
        (
            one(r#","parameters":{"binary_data_size":5}"#),
            b"abc",
            InvalidArg,
            "unexpected size for input 'A', expecting 2 additional bytes for model 'm'".into(),
        ),
        (one(r#","data":[1,2]"#), b"x", InvalidArg, "unexpected additional input data for model 'm'".into()),
        (
            one(r#","parameters":{"shared_memory_region":"r","shared_memory_byte_size":2}"#),
            b"",
            Unsupported,
            SHARED_MEMORY_DISABLED.into(),
        ),
        (
            out(r#"{"name":"O","parameters":{"shared_memory_region":"r","shared_memory_byte_size":2}}"#),
            b"",
            Unsupported,
            SHARED_MEMORY_DISABLED.into(),
        ),
        (
            one(r#","parameters":{"shared_memory_region":"r"}"#),
            b"",
            Internal,
            "Unable to parse 'shared_memory_byte_size': attempt to access non-existing object member \
             'shared_memory_byte_size'"
                .into(),
        ),
        (
            one(r#","parameters":{"shared_memory_region":"r","shared_memory_byte_size":-2}"#),
            b"",
            Internal,
            "Unable to parse 'shared_memory_byte_size': attempt to access JSON non-unsigned-integer as \
             unsigned-integer"
                .into(),
        ),
        (
            one(r#","parameters":{"shared_memory_region":7,"shared_memory_byte_size":2}"#),
            b"",
            Internal,
            "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string".into(),
        ),
        (one(r#","data":7"#), b"", Internal, "Unable to parse 'data': attempt to access JSON non-array as array".into()),
        (
            r#"{"inputs":[{"name":"X","shape":[1],"datatype":"INT8","data":[1]}]}"#.into(),
            b"",
            InvalidArg,
            "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'm'. Got input(s) \
             ['X'], but missing required input(s) ['A','S']. Please provide all required input(s)."
                .into(),
        ),
        (
            format!(r#"{{"inputs":[{{{a},"data":[1,2]}},{{{a},"data":[1,2]}},{x}]}}"#),
            b"",
            InvalidArg,
            "[request id: <id_unknown>] expected 2 inputs but got 3 inputs for model 'm'. Got input(s) \
             ['A','A','X'], but missing required input(s) ['S']. Please provide all required input(s)."
                .into(),
        ),
        (
            format!(r#"{{"inputs":[{{{a},"data":[1,2]}},{x}]}}"#),
            b"",
            InvalidArg,
            "unexpected inference input 'X' for model 'm'".into(),
        ),
        (
            r#"{"inputs":[{"name":"A","shape":[-1],"data":[]}]}"#.into(),
            b"",
            Internal,
            "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer".into(),
        ),
        (
            r#"{"id":"i","inputs":[{"name":"A","shape":[1],"datatype":"INT4","data":[]}]}"#.into(),
            b"",
            InvalidArg,
            "invalid datatype for input A".into(),
        ),
        (
            r#"{"inputs":[{"name":"A","shape":[9223372036854775807,3],"datatype":"INT8","data":[]}]}"#.into(),
            b"",
            InvalidArg,
            "invalid shape for input 'A': shape [9223372036854775807,3] causes total element count to \
             exceed maximum size of 9223372036854775807"
                .into(),
        ),
        (
            r#"{"inputs":[{"name":"A","shape":[9223372036854775807],"datatype":"INT16","data":[]}]}"#.into(),
            b"",
            InvalidArg,
            "byte size overflow for input 'A': element count (9223372036854775807) * data type size (2) \
             exceeds maximum allowed size (9223372036854775807)"
                .into(),
        ),
        (
            out(r#"{"name":"O"},{"name":"O","parameters":{"binary_data":true}}"#),
            b"",
            InvalidArg,
            "[request id: <id_unknown>] output 'O' already exists in request".into(),
        ),
        (out(r#"{"name":"Q"}"#), b"", InvalidArg, "unexpected inference output 'Q' for model 'm'".into()),
        (
            out(r#"{"name":"O","parameters":{"shared_memory_region":"r","classification":1}}"#),
            b"",
            InvalidArg,
            "Output can't set both 'shared_memory_region' and 'classification'".into(),
        ),
        (
            out(r#"{"name":"O","parameters":{"shared_memory_region":"r","binary_data":true}}"#),
            b"",
            InvalidArg,
            "Output can't set both 'shared_memory_region' and 'binary_data'".into(),
        ),
        (
            r#"{"parameters":{"triton_x":1},"inputs":[]}"#.into(),
            b"",
            InvalidArg,
            "parameter keys starting with 'triton_' are reserved for Triton usage and should not be \
             specified."
                .into(),
        ),
        (
            r#"{"parameters":{"p":[1]},"inputs":[]}"#.into(),
            b"",
            InvalidArg,
            "parameter 'p' has invalid type. It should be either 'int', 'bool', or 'string'.".into(),
        ),
        (
            r#"{"parameters":{"priority":-1},"inputs":[]}"#.into(),
            b"",
            Internal,
            "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer".into(),
        ),
    ];
    for (json, tail, code, message) in table {
        let error = read(&json, tail).map(|_| ()).unwrap_err();
        assert_eq!((error.code, error.message), (code, message), "{json}");
    }
}

#[test]
fn raw_body_is_the_only_input() {
    let error = |text: &str| Err(format!("[request id: <id_unknown>] {text}"));
    type Inputs<'a> = &'a [(&'a str, DType, &'a [i64])];
    type Row<'a> = (Inputs<'a>, u32, &'a [u8], Result<Vec<i64>, String>);
    let table: [Row<'_>; 9] = [
        (&[("A", DType::Int16, &[2])], 8, &[0; 4], Ok(vec![1, 2])),
        (&[("A", DType::Int16, &[-1])], 0, &[0; 6], Ok(vec![3])),
        (&[("A", DType::Int16, &[2, -1])], 4, &[0; 12], Ok(vec![1, 2, 3])),
        (&[("A", DType::Int16, &[0, -1])], 0, &[], Ok(vec![0, 0])),
        (&[("A", DType::String, &[1])], 4, b"abc", Ok(vec![1, 1])),
        (
            &[("A", DType::String, &[-1])],
            4,
            b"abc",
            error("For BYTE datatype raw input 'A', the model must have input shape [1]"),
        ),
        (
            &[("A", DType::String, &[2])],
            4,
            b"abc",
            error("For BYTE datatype raw input 'A', the model must have input shape [1]"),
        ),
        (
            &[("A", DType::Int8, &[-1, -1])],
            4,
            b"abc",
            error(
                "The shape of the raw input 'A' can not be deduced because there are more than one \
                 variable-sized dimension",
            ),
        ),
        (
            &[("A", DType::Int8, &[1]), ("B", DType::Int8, &[1])],
            4,
            b"abc",
            error(
                "Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in 'm' model \
                 configuration",
            ),
        ),
    ];
    for (inputs, max_batch, body, want) in table {
        let got = read_raw_request(&signature(inputs, max_batch), Bytes::copy_from_slice(body));
        let got =
            got.map(|(unchecked, _)| unchecked.inputs[0].shape.to_vec()).map_err(|e| e.message);
        assert_eq!(got, want, "{inputs:?}");
    }
}

#[test]
fn json_part_is_bounded() {
    let json = format!("{{\"inputs\":[]{}}}", " ".repeat(10_000));
    let error = read(&json, b"").map(|_| ()).unwrap_err();
    assert!(error.message.starts_with("request JSON size of 10013 bytes exceeds"));
}
