//! Unit tests of `parts.rs`.

use super::*;
use crate::schema::Described;
use crate::{v1, v2};
use prost::Message as _;
use prost::bytes::Bytes;

#[test]
fn ordinary_messages_pass_whatever_their_tensors_hold() {
    let tensor = v2::model_infer_request::InferInputTensor::default();
    let mut request = v2::ModelInferRequest {
        inputs: vec![tensor; 1000],
        raw_input_contents: vec![Bytes::from(vec![0x2a; 1 << 20])],
        ..Default::default()
    };
    let light =
        check_parts(v2::ModelInferRequest::schema(), request.encode_to_vec().as_slice()).unwrap();
    assert!(light < 1 << 20, "{light}");
    request.raw_input_contents = vec![Bytes::new(); 2 * MAX_PARTS];
    let heavy =
        check_parts(v2::ModelInferRequest::schema(), request.encode_to_vec().as_slice()).unwrap();
    assert!(heavy >= 2 * MAX_PARTS * size_of::<Bytes>(), "{heavy}");
}

#[test]
fn packed_numbers_count_as_they_are_decoded() {
    let contents = |c: v2::InferTensorContents| {
        let input =
            v2::model_infer_request::InferInputTensor { contents: Some(c), ..Default::default() };
        let request = v2::ModelInferRequest { inputs: vec![input], ..Default::default() };
        check_parts(v2::ModelInferRequest::schema(), request.encode_to_vec().as_slice()).unwrap()
    };
    let parts = 2 * PART_SIZE;
    let int64_contents = vec![1 << 40; 1000];
    let got = contents(v2::InferTensorContents { int64_contents, ..Default::default() });
    assert_eq!(got, parts + GROWTH * 8000);
    let fp32_contents = vec![1.0; 1000];
    let got = contents(v2::InferTensorContents { fp32_contents, ..Default::default() });
    assert_eq!(got, parts + GROWTH * 4000);
}

#[test]
fn parts_are_counted_on_every_level() {
    let many = vec![Default::default(); MAX_PARTS];
    let v2 = v2::ModelInferRequest { inputs: many, ..Default::default() };
    assert_eq!(
        check_parts(v2::ModelInferRequest::schema(), v2.encode_to_vec().as_slice()),
        Err(TooManyParts)
    );
    let input = vec![Default::default(); MAX_PARTS];
    let header = v1::InferRequestHeader { input, ..Default::default() };
    let v1 = v1::InferRequest { meta_data: Some(header), ..Default::default() };
    assert_eq!(
        check_parts(v1::InferRequest::schema(), v1.encode_to_vec().as_slice()),
        Err(TooManyParts)
    );
}

#[test]
fn what_cannot_be_read_is_left_to_the_decoder() {
    for bytes in [&[0x2a, 0xff, 0x01][..], &[0x80], &[0x2b], &[0x2a, 0x02, 0x0a, 0x05], &[]] {
        assert!(check_parts(v2::ModelInferRequest::schema(), bytes).is_ok());
    }
}

#[test]
fn parts_behind_unknown_groups_are_counted() {
    let inputs = vec![Default::default(); MAX_PARTS];
    let parts = v2::ModelInferRequest { inputs, ..Default::default() }.encode_to_vec();
    // Field 15 as an empty group; one with a string and a group inside.
    for group in [&[0x7b, 0x7c][..], &[0x7b, 0x0a, 0x01, b'x', 0x13, 0x14, 0x7c]] {
        let message = [group, parts.as_slice()].concat();
        assert!(v2::ModelInferRequest::decode(message.as_slice()).is_ok());
        assert_eq!(
            check_parts(v2::ModelInferRequest::schema(), message.as_slice()),
            Err(TooManyParts)
        );
    }
}
