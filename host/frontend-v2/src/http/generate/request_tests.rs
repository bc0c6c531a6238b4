//! Unit tests of `request.rs`.

use super::*;
use trtserver_base::error::Code;
use trtserver_request::{CorrelationId, ParameterValue};

const LIMIT: u64 = 1000;

fn signature(batching: bool) -> ModelSignature {
    let spec = |name: &str, dtype, dims: &[i64]| TensorSpec::new(name, dtype, dims);
    ModelSignature {
        model: "m".into(),
        max_batch_size: if batching { 8 } else { 0 },
        inputs: vec![
            spec("TEXT", DType::String, &[1]),
            spec("N", DType::Int32, &[-1]),
            spec("GRID", DType::Fp32, &[2, -1]),
            spec("DEEP", DType::Uint8, &[-1, 3, -1]),
            spec("ONE", DType::Bool, &[]),
        ],
        ..ModelSignature::default()
    }
}

/// Index, shape and bytes of an input.
type Input = (usize, Vec<i64>, Vec<u8>);

fn shapes(batching: bool, json: &str) -> Result<Vec<Input>> {
    let request = read_generate_request(&signature(batching), json.as_bytes(), LIMIT)?;
    let inputs = request.inputs.iter();
    Ok(inputs.map(|i| (i.index, i.shape.to_vec(), i.data.payload().to_vec())).collect())
}

#[test]
fn shape_is_the_declared_one_with_the_rest_in_the_innermost_variable_dimension() {
    let one = |n: i32| n.to_le_bytes().to_vec();
    assert_eq!(shapes(true, r#"{"N":7}"#).unwrap(), [(1, vec![1, 1], one(7))]);
    assert_eq!(shapes(false, r#"{"N":7}"#).unwrap(), [(1, vec![1], one(7))]);
    let text = [(0, vec![1, 1], b"\x02\0\0\0hi".to_vec())];
    assert_eq!(shapes(true, r#"{"TEXT":"hi"}"#).unwrap(), text);
    // Two texts of one element each are a batch of two.
    assert_eq!(shapes(true, r#"{"TEXT":["a","b"]}"#).unwrap()[0].1, [2, 1]);
    assert_eq!(shapes(true, r#"{"N":[]}"#).unwrap()[0].1, [1, 0]);
    assert_eq!(shapes(true, r#"{"GRID":[1,2,3,4]}"#).unwrap()[0].1, [1, 2, 2]);
    assert_eq!(shapes(false, r#"{"DEEP":[1,2,3,4,5,6]}"#).unwrap()[0].1, [1, 3, 2]);
    assert_eq!(shapes(false, r#"{"ONE":true}"#).unwrap(), [(4, vec![], vec![1])]);
    for (batching, json, input) in [
        (true, r#"{"GRID":[1,2,3]}"#, "GRID"),
        (false, r#"{"TEXT":["a","b"]}"#, "TEXT"),
        (false, r#"{"TEXT":[]}"#, "TEXT"),
        (false, r#"{"ONE":[true,false]}"#, "ONE"),
    ] {
        let error = shapes(batching, json).unwrap_err();
        let want =
            format!("The schema can not convert input '{input}' to tensor with proper shape");
        assert_eq!((error.code, error.message), (Code::InvalidArg, want), "{json}");
    }
}

#[test]
fn other_members_become_parameters() {
    let json = r#"{"id":"x","N":[1,2],"top":1,"parameters":{"TEXT":"t","half":0.5,"sequence_id":7,
        "sequence_start":true,"priority":2,"timeout":9},"off":false,"name":"n"}"#;
    let request = read_generate_request(&signature(true), json.as_bytes(), LIMIT).unwrap();
    assert_eq!(request.id, "x");
    assert_eq!(request.inputs.iter().map(|i| i.index).collect::<Vec<_>>(), [1, 0]);
    let parameters = request.parameters;
    assert_eq!(parameters.sequence.id, CorrelationId::Number(7));
    assert!(parameters.sequence.start && !parameters.sequence.end);
    assert_eq!((parameters.priority, parameters.timeout_us), (2, 9));
    let custom: Vec<(&str, ParameterValue)> =
        parameters.custom.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    let text = |t: &str| ParameterValue::String(t.to_owned());
    assert_eq!(
        custom,
        [
            ("id", text("x")),
            ("top", ParameterValue::Int(1)),
            ("half", ParameterValue::Double(0.5)),
            ("off", ParameterValue::Bool(false)),
            ("name", text("n")),
        ]
    );
}

#[test]
fn invalid_requests_are_refused() {
    let long = format!(r#"{{"N":[{}1]}}"#, "1,".repeat(249));
    let longer = format!(r#"{{"N":[{}1],"DEEP":[1,2,3]}}"#, "1,".repeat(249));
    for (json, code, message) in [
        ("[]", Code::Internal, "attempt to get members for non-object"),
        ("", Code::Internal, "The document is empty."),
        (r#"{"N":1"#, Code::Internal, "failed to parse the request JSON buffer"),
        (r#"{"parameters":7}"#, Code::Internal, "Expected JSON object for keyword: 'parameters'"),
        (
            r#"{"parameters":{"parameters":{}}}"#,
            Code::InvalidArg,
            "parameter 'parameters' has invalid type.",
        ),
        (r#"{"stop":["a"]}"#, Code::InvalidArg, "parameter 'stop' has invalid type."),
        (r#"{"stop":null}"#, Code::InvalidArg, "parameter 'stop' has invalid type."),
        (r#"{"triton_x":1}"#, Code::InvalidArg, "are reserved for Triton usage"),
        (
            r#"{"binary_data_output":true}"#,
            Code::InvalidArg,
            "'binary_data_output' is not supported by generate",
        ),
        (r#"{"id":7}"#, Code::Internal, "attempt to access JSON non-string as string"),
        (r#"{"TEXT":7}"#, Code::Internal, "attempt to access JSON non-string as string"),
        (
            r#"{"N":"7"}"#,
            Code::Internal,
            "attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            r#"{"N":{"a":1}}"#,
            Code::Internal,
            "attempt to access JSON non-signed-integer as signed-integer",
        ),
        (
            r#"{"N":[[1,2],[3]]}"#,
            Code::Internal,
            "Unable to parse 'data': Shape does not match true shape of 'data' field",
        ),
        (
            &longer,
            Code::InvalidArg,
            "request size of 1003 bytes with input 'DEEP' of size 3 bytes exceeds the maximum allowed input size of 1000.",
        ),
    ] {
        let Err(error) = read_generate_request(&signature(true), json.as_bytes(), LIMIT) else {
            panic!("{json}")
        };
        assert_eq!(error.code, code, "{json}: {}", error.message);
        assert!(error.message.contains(message), "{json}: {}", error.message);
    }
    assert!(read_generate_request(&signature(true), long.as_bytes(), LIMIT).is_ok());
    let mut nested = signature(true);
    nested.inputs.push(TensorSpec::new("parameters", DType::Fp32, &[1]));
    let error = read_generate_request(&nested, br#"{"parameters":{}}"#, LIMIT).err().unwrap();
    assert_eq!(
        error.message,
        "Keyword 'parameters' for nested schema also given as input tensor name"
    );
}
