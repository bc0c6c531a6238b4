//! Unit tests of the encoders: what they write is read back with the protocols' own parsers.

use super::*;
use crate::model::{ModelTensor, Scheduling};
use prost::Message as _;
use trtserver_proto::{text, v1, v2};

fn model() -> MeasuredModel {
    let tensor = |name: &str, datatype: &str| ModelTensor {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        shape: vec![2],
    };
    MeasuredModel {
        name: "a model".to_owned(),
        version: "3".to_owned(),
        max_batch_size: 8,
        inputs: vec![tensor("IN", "INT32"), tensor("TEXT", "BYTES")],
        outputs: vec![tensor("OUT", "INT32")],
        scheduling: Scheduling::Sequence,
        decoupled: false,
        composing: Vec::new(),
    }
}

fn tensors(region: bool) -> BatchTensors {
    let region = region.then(|| RegionSlice { name: "r".to_owned(), offset: 4, byte_size: 16 });
    BatchTensors {
        inputs: vec![
            TensorPayload { shape: vec![2], bytes: vec![7; 16], region: region.clone() },
            TensorPayload { shape: vec![2], bytes: b"\x01\0\0\0a\0\0\0\0".repeat(2), region: None },
        ],
        outputs: region.into_iter().collect(),
    }
}

fn target(generation: Generation, protocol: Protocol) -> EncodeTarget<'static> {
    let (streaming, sequences) = (false, true);
    let authority = "host:1";
    EncodeTarget { generation, protocol, authority, headers: &[], streaming, sequences, batch: 2 }
}

const STEP: SequenceStep = SequenceStep { id: 12_345_678, start: true, end: false };

/// The request as it is sent, patched in pieces.
fn sent(generation: Generation, protocol: Protocol, region: bool) -> Vec<u8> {
    let streams = [vec![tensors(region)]];
    let prepared = prepare_requests(&model(), &streams, &target(generation, protocol));
    let message = &prepared.streams[0][0];
    let mut whole = message.bytes.clone();
    for (index, piece) in whole.chunks_mut(3).enumerate() {
        message.patch(Some(STEP), index * 3, piece);
    }
    let mut head = Vec::new();
    message.patched_head(Some(STEP), &mut head);
    assert_eq!(head, whole[..head.len()]);
    assert_eq!(message.bytes[head.len()..], whole[head.len()..]);
    message.patched_head(None, &mut head);
    assert!(head.is_empty());
    whole
}

/// Head lines and body of an HTTP request.
fn parts(request: &[u8]) -> (Vec<String>, Vec<u8>) {
    let at = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(request[..at].to_vec()).unwrap();
    let lines: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    let body = request[at + 4..].to_vec();
    assert!(lines.contains(&format!("Content-Length: {}", body.len())), "{lines:?}");
    assert!(lines.contains(&"Host: host:1".to_owned()), "{lines:?}");
    (lines, body)
}

fn check_v1(header: &v1::InferRequestHeader, region: bool) {
    assert_eq!(header.batch_size, 2);
    assert_eq!((header.correlation_id, header.flags), (12_345_678, 1));
    let input = &header.input[0];
    assert_eq!((input.name.as_str(), &input.dims, input.batch_byte_size), ("IN", &vec![2], 0));
    assert_eq!(input.shared_memory.is_some(), region);
    assert_eq!(header.input[1].batch_byte_size, 18);
    assert_eq!(header.output[0].name, "OUT");
    assert_eq!(header.output[0].shared_memory.is_some(), region);
}

#[test]
fn v1_http_requests_read_back() {
    for region in [false, true] {
        let (lines, body) = parts(&sent(Generation::V1, Protocol::Http, region));
        assert_eq!(lines[0], "POST /api/infer/a%20model/3?format=binary HTTP/1.1");
        let header = lines.iter().find_map(|line| line.strip_prefix("NV-InferRequest: ")).unwrap();
        check_v1(&text::parse(header).unwrap(), region);
        assert_eq!(body.len(), if region { 18 } else { 34 });
    }
}

fn unprefixed(bytes: &[u8]) -> &[u8] {
    assert_eq!(bytes[0], 0);
    assert_eq!(u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize, bytes.len() - 5);
    &bytes[5..]
}

#[test]
fn v1_grpc_requests_read_back() {
    for region in [false, true] {
        let bytes = sent(Generation::V1, Protocol::Grpc, region);
        let request = v1::InferRequest::decode(unprefixed(&bytes)).unwrap();
        assert_eq!((request.model_name.as_str(), request.model_version), ("a model", 3));
        check_v1(&request.meta_data.unwrap(), region);
        assert_eq!(request.raw_input.len(), if region { 1 } else { 2 });
    }
}

#[test]
fn v2_http_requests_read_back() {
    for region in [false, true] {
        let (lines, body) = parts(&sent(Generation::V2, Protocol::Http, region));
        assert_eq!(lines[0], "POST /v2/models/a%20model/versions/3/infer HTTP/1.1");
        let length = lines
            .iter()
            .find_map(|line| line.strip_prefix("Inference-Header-Content-Length: "))
            .unwrap();
        let (json, binary) = body.split_at(length.parse().unwrap());
        let json: serde_json::Value = serde_json::from_slice(json).unwrap();
        let expected = serde_json::json!({
            "sequence_id": 12_345_678, "sequence_start": true, "sequence_end": false
        });
        assert_eq!(json["parameters"], expected);
        assert_eq!(json["inputs"][0]["shape"], serde_json::json!([2, 2]));
        assert_eq!(json["inputs"][1]["parameters"]["binary_data_size"], 18);
        let place = &json["inputs"][0]["parameters"]["shared_memory_region"];
        assert_eq!(place.as_str(), region.then_some("r"));
        assert_eq!(binary.len(), if region { 18 } else { 34 });
    }
}

#[test]
fn v2_grpc_requests_read_back() {
    for region in [false, true] {
        let bytes = sent(Generation::V2, Protocol::Grpc, region);
        let request = v2::ModelInferRequest::decode(unprefixed(&bytes)).unwrap();
        assert_eq!((request.model_name.as_str(), request.model_version.as_str()), ("a model", "3"));
        let choice = |name: &str| request.parameters[name].parameter_choice.clone().unwrap();
        use v2::infer_parameter::ParameterChoice::{BoolParam, Int64Param};
        assert_eq!(choice("sequence_id"), Int64Param(12_345_678));
        assert_eq!(choice("sequence_start"), BoolParam(true));
        assert_eq!(choice("sequence_end"), BoolParam(false));
        assert_eq!(request.inputs[0].shape, [2, 2]);
        assert_eq!(request.inputs[0].parameters.len(), if region { 3 } else { 0 });
        assert_eq!(request.raw_input_contents.len(), if region { 1 } else { 2 });
    }
}

#[test]
fn batches_join_items_in_turn() {
    use crate::data::TensorData;
    let mut model = model();
    model.inputs.truncate(1);
    let item = |value: u8| vec![TensorData { shape: vec![1], bytes: vec![value] }];
    let data = InputStreams { streams: vec![vec![item(1), item(2), item(3), item(4), item(5)]] };
    let joined = |batch| {
        let all = join_batches(&model, &data, batch).unwrap();
        all[0].iter().map(|tensors| tensors.inputs[0].bytes.clone()).collect::<Vec<_>>()
    };
    assert_eq!(joined(2), [vec![1, 2], vec![3, 4]]);
    assert_eq!(joined(7), [vec![1, 2, 3, 4, 5, 1, 2]]);
    let other = vec![TensorData { shape: vec![2], bytes: vec![9, 9] }];
    let data = InputStreams { streams: vec![vec![item(1), other]] };
    assert!(join_batches(&model, &data, 2).unwrap_err().contains("[1] and [2]"));
}
