//! Unit tests of the requests of v2: the same message over both wires.

use super::*;
use crate::v2::json;
use crate::v2::request::{InferRequestedOutput, Input, Sequence};
use bytes::BytesMut;
use prost::Message;
use trtserver_proto::v2::ModelInferRequest;

fn full() -> InferRequest {
    let memory = SharedMemory { region: "r".into(), offset: 8, byte_size: 16 };
    let mut request = InferRequest::new("m")
        .id("7")
        .input(Input::new("A", "FP32", [1, 2], &b"12345678"[..]))
        .input(Input::shared("B", "FP32", [1, 4], memory.clone()))
        .input(Input::strings("C", [1], ["x"]))
        .output(InferRequestedOutput::new("O"))
        .output(InferRequestedOutput::classes("P", 3))
        .output(InferRequestedOutput::shared("Q", memory))
        .sequence(Sequence { id: SequenceId::Number(u64::MAX), start: true, end: false });
    request.version = "2".into();
    request.priority = 5;
    request.timeout_us = 6;
    request.empty_final_response = true;
    request.parameters.insert("b".into(), Parameter::Bool(false));
    request.parameters.insert("d".into(), Parameter::Double(0.5));
    request.parameters.insert("s".into(), Parameter::String("text".into()));
    request
}

fn decoded(segments: Segments) -> ModelInferRequest {
    let mut bytes = BytesMut::new();
    segments.finish().iter().for_each(|segment| bytes.extend_from_slice(segment));
    ModelInferRequest::decode(&bytes[5..]).unwrap()
}

#[test]
fn grpc_message_has_every_field() {
    let message = decoded(encode_request(&full(), true));
    let names = |p: &std::collections::BTreeMap<String, InferParameter>| {
        p.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!((message.model_name.as_str(), message.model_version.as_str()), ("m", "2"));
    assert_eq!(
        names(&message.parameters),
        "b d priority s sequence_end sequence_id sequence_start timeout triton_enable_empty_final_response"
    );
    let id = message.parameters["sequence_id"].parameter_choice.clone();
    assert_eq!(id, Some(ParameterChoice::Int64Param(-1)));
    let kept = message.parameters["b"].parameter_choice.clone();
    assert_eq!(kept, Some(ParameterChoice::BoolParam(false)));
    assert_eq!(message.inputs[0].shape, [1, 2]);
    let memory = "shared_memory_byte_size shared_memory_offset shared_memory_region";
    assert_eq!(names(&message.inputs[1].parameters), memory);
    assert_eq!(names(&message.outputs[1].parameters), "classification");
    assert_eq!(names(&message.outputs[2].parameters), memory);
    // The input in shared memory has no entry.
    assert_eq!(message.raw_input_contents, [&b"12345678"[..], b"\x01\0\0\0x"]);
    assert!(
        !decoded(encode_request(&full(), false))
            .parameters
            .contains_key("triton_enable_empty_final_response")
    );
}

#[test]
fn large_tensors_are_not_copied() {
    let tensor = Bytes::from(vec![1; 1 << 20]);
    let input = Input::new("A", "UINT8", [1 << 20], tensor.clone());
    let of_grpc = encode_request(&InferRequest::new("m").input(input.clone()), false).finish();
    let (of_http, _) = json::json_request(&InferRequest::new("m").input(input)).unwrap();
    for segments in [of_grpc, of_http.finish()] {
        assert_eq!(segments.back().unwrap().as_ptr(), tensor.as_ptr());
    }
}

#[test]
fn http_body_is_json_and_tensors() {
    let (body, length) = json::json_request(&full()).unwrap();
    let body = body.join();
    let (json, tensors) = body.split_at(length.unwrap());
    assert_eq!(tensors, b"12345678\x01\0\0\0x");
    let json: serde_json::Value = serde_json::from_slice(json).unwrap();
    let memory = serde_json::json!({
        "shared_memory_region": "r", "shared_memory_byte_size": 16, "shared_memory_offset": 8
    });
    let expected = serde_json::json!({
        "id": "7",
        "parameters": {
            "sequence_id": u64::MAX, "sequence_start": true, "sequence_end": false, "priority": 5, "timeout": 6,
            "b": false, "d": 0.5, "s": "text"
        },
        "inputs": [
            {"name": "A", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}},
            {"name": "B", "shape": [1, 4], "datatype": "FP32", "parameters": memory},
            {"name": "C", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}
        ],
        "outputs": [
            {"name": "O", "parameters": {"binary_data": true}},
            {"name": "P", "parameters": {"binary_data": true, "classification": 3}},
            {"name": "Q", "parameters": memory}
        ]
    });
    assert_eq!(json, expected);
}
