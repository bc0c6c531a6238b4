//! Unit tests of `stream_messages.rs`.

use super::*;
use crate::echo_testing as testing;
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use std::convert::Infallible;
use std::io::Write;
use tokio_stream::StreamExt;
use trtserver_proto::v2::model_infer_request::InferInputTensor;
use trtserver_proto::v2::{InferTensorContents, ModelInferRequest};

const DECODING: StreamDecoding<ModelInferRequest> =
    StreamDecoding { raw_field: 7, convert: |message| message.id = "converted".into() };

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    [&[flag][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

fn gzipped(message: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(message).unwrap();
    gzip.finish().unwrap()
}

/// The messages, and the code of the error at the end if there is one.
async fn read(wire: &[u8], step: usize) -> (Vec<ModelInferRequest>, Option<tonic::Code>) {
    let frames: Vec<Result<Frame<Bytes>, Infallible>> =
        wire.chunks(step).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect();
    let body = StreamBody::new(tokio_stream::iter(frames));
    let headers = HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-encoding"),
        http::HeaderValue::from_static("gzip"),
    )]);
    let mut messages = StreamMessages::new(&testing::context(), headers, body, DECODING);
    let mut got = Vec::new();
    while let Some(message) = messages.next().await {
        match message {
            Ok(message) => got.push(message),
            Err(status) => {
                assert!(messages.next().await.is_none());
                return (got, Some(status.code()));
            }
        }
    }
    (got, None)
}

fn request(id: &str, raw: usize) -> ModelInferRequest {
    let raw_input_contents = vec![Bytes::from(vec![7; raw])];
    ModelInferRequest { id: id.into(), raw_input_contents, ..Default::default() }
}

#[tokio::test]
async fn chunk_size_does_not_change_the_messages() {
    let want = [request("a", 3), request("b", 0), request("c", 200_000), request("d", 70)];
    let wire: Vec<u8> = want
        .iter()
        .enumerate()
        .flat_map(|(i, message)| {
            let message = message.encode_to_vec();
            if i % 2 == 0 { framed(0, &message) } else { framed(1, &gzipped(&message)) }
        })
        .collect();
    for step in [1, 3, 7, 1000, 65_536, wire.len()] {
        assert_eq!(read(&wire, step).await, (want.to_vec(), None), "chunks of {step}");
    }
    assert_eq!(read(&[], 1).await, (vec![], None));
}

#[tokio::test]
async fn first_error_ends_the_stream() {
    let good = framed(0, &request("a", 3).encode_to_vec());
    let after = |bytes: &[u8]| [&good, bytes].concat();
    for (what, wire, code) in [
        ("cut short", after(&good[..good.len() - 1]), tonic::Code::Internal),
        ("half a prefix", after(&good[..3]), tonic::Code::Internal),
        ("unknown flag", after(&framed(2, b"")), tonic::Code::Internal),
        ("too long", after(&[0, 0xff, 0xff, 0xff, 0xff]), tonic::Code::ResourceExhausted),
        ("no message", after(&framed(0, b"\x0a\x05x")), tonic::Code::Internal),
    ] {
        let (got, status) = read(&wire, 16).await;
        assert_eq!((got.len(), status), (1, Some(code)), "{what}");
    }
}

#[tokio::test]
async fn large_typed_tensors_are_converted() {
    let contents = InferTensorContents { fp32_contents: vec![1.5; 40_000], ..Default::default() };
    let input = InferInputTensor {
        datatype: "FP32".into(),
        contents: Some(contents),
        ..Default::default()
    };
    let large = ModelInferRequest { inputs: vec![input], ..Default::default() };
    let small = ModelInferRequest::default();
    let wire = [large, small].map(|message| framed(0, &message.encode_to_vec())).concat();
    let (got, status) = read(&wire, 10_000).await;
    assert_eq!(status, None);
    assert_eq!(got.iter().map(|message| &*message.id).collect::<Vec<_>>(), ["converted", ""]);
}
