//! Unit tests of `legacy.rs`.

use super::*;
use proptest::prelude::*;
use trtserver_proto::v1::infer_response_header;

#[derive(Clone, PartialEq, Message)]
struct OldInput {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint64, tag = "2")]
    byte_size: u64,
}

#[derive(Clone, PartialEq, Message)]
struct OldRequestHeader {
    #[prost(uint32, tag = "1")]
    batch_size: u32,
    #[prost(message, repeated, tag = "2")]
    input: Vec<OldInput>,
}

#[derive(Clone, PartialEq, Message)]
struct OldRequest {
    #[prost(string, tag = "1")]
    model_name: String,
    #[prost(string, optional, tag = "2")]
    version: Option<String>,
    #[prost(message, optional, tag = "3")]
    meta_data: Option<OldRequestHeader>,
}

#[test]
fn legacy_requests_decode() {
    let input = OldInput { name: "I".into(), byte_size: 64 };
    let header = OldRequestHeader { batch_size: 2, input: vec![input] };
    for (version, want) in
        [(None, 0), (Some(""), -1), (Some("3"), 3), (Some("-3"), i64::MAX), (Some("x"), i64::MAX)]
    {
        let old = OldRequest {
            model_name: "m".into(),
            version: version.map(Into::into),
            meta_data: Some(header.clone()),
        };
        let got: InferRequest =
            WithLegacy::decode(old.encode_to_vec().as_slice()).map(|e| e.0).unwrap();
        let meta_data = got.meta_data.unwrap();
        assert_eq!((got.model_version, &*got.model_name), (want, "m"));
        let input = Input { name: "I".into(), byte_size: 64, ..Input::default() };
        assert_eq!((meta_data.batch_size, meta_data.input), (2, vec![input]));
    }
}

proptest! {
    #[test]
    fn requests_of_today_read_the_same(
        version: i64,
        names in proptest::collection::vec("[a-z]{0,3}", 0..4),
        dims in proptest::collection::vec(any::<i64>(), 0..4),
        numbers: [u32; 3],
    ) {
        let input = |name: String| Input {
            name,
            dims: dims.clone(),
            batch_byte_size: numbers[0].into(),
            ..Input::default()
        };
        let request = InferRequest {
            model_name: "m".into(),
            model_version: version,
            meta_data: Some(InferRequestHeader {
                batch_size: numbers[1],
                input: names.into_iter().map(input).collect(),
                id: numbers[2].into(),
                ..InferRequestHeader::default()
            }),
            raw_input: vec![bytes::Bytes::from_static(b"x")],
        };
        let read = WithLegacy::<InferRequest>::decode(request.encode_to_vec().as_slice());
        prop_assert_eq!(read.unwrap().0, request);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = WithLegacy::<InferRequest>::decode(bytes.as_slice());
    }
}

#[test]
fn legacy_responses_encode() {
    let raw =
        infer_response_header::output::Raw { dims: vec![16], batch_byte_size: 128, byte_size: 0 };
    let output =
        infer_response_header::Output { name: "O".into(), raw: Some(raw), ..Default::default() };
    let header = InferResponseHeader {
        model_name: "m".into(),
        model_version: 1,
        batch_size: 2,
        output: vec![output],
        id: 0,
    };
    let old = LegacyHeader::new(header);
    let bytes = b"\x0a\x01m\x10\x01\x18\x02\x22\x07\x0a\x01O\x12\x02\x08\x40";
    assert_eq!(old.clone().trailer(false), bytes);
    assert_eq!(
        old.trailer(true),
        [&bytes[..], b"\x08\x02\x12\x07\x0a\x01O\x12\x02\x08\x40"].concat()
    );
}
