//! Message frames, received and sent, compared with prost.

use super::receive::read_message;
use super::*;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use std::convert::Infallible;
use std::io::Write;
use tonic::{Code, Status};
use trtserver_proto::schema::Described;
use trtserver_proto::v2::{ModelInferRequest, ModelInferResponse, model_infer_request};

fn request(payloads: &[usize]) -> ModelInferRequest {
    let input = |i: usize| model_infer_request::InferInputTensor {
        name: format!("INPUT{i}"),
        datatype: "FP32".into(),
        shape: vec![1, 300 + i as i64],
        ..Default::default()
    };
    ModelInferRequest {
        model_name: "modèle".into(),
        id: "7".into(),
        inputs: (0..payloads.len()).map(input).collect(),
        raw_input_contents: payloads
            .iter()
            .enumerate()
            .map(|(i, n)| Bytes::from((0..*n).map(|b| (b * 7 + i) as u8).collect::<Vec<_>>()))
            .collect(),
        ..Default::default()
    }
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut out = vec![flag];
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    out
}

fn body(bytes: &[u8], step: usize) -> impl http_body::Body<Data = Bytes> + use<> {
    let frames: Vec<Result<Frame<Bytes>, Infallible>> =
        bytes.chunks(step).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect();
    StreamBody::new(tokio_stream::iter(frames))
}

#[tokio::test]
async fn chunk_size_does_not_change_decoding() {
    let want = request(&[0, 1, 64, 333]);
    let wire = framed(0, &want.encode_to_vec());
    for step in 1..=wire.len() {
        let got: ModelInferRequest =
            read_message(ModelInferRequest::schema(), &HeaderMap::new(), body(&wire, step), |_| {
                None
            })
            .await
            .unwrap();
        assert_eq!(got, want, "chunks of {step} bytes");
    }
}

#[tokio::test]
async fn tensors_are_aligned() {
    let want = request(&[4096, 40_000]);
    let wire = framed(0, &want.encode_to_vec());
    for step in [100, 1000, 16_384, wire.len()] {
        let got: ModelInferRequest =
            read_message(ModelInferRequest::schema(), &HeaderMap::new(), body(&wire, step), |_| {
                None
            })
            .await
            .unwrap();
        assert_eq!(got, want);
        for raw in &got.raw_input_contents {
            assert_eq!(raw.as_ptr() as usize % 8, 0);
        }
    }
}

#[tokio::test]
async fn compressed_messages_are_bounded() {
    let want = request(&[10_000]);
    let plain = want.encode_to_vec();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    deflate.write_all(&plain).unwrap();
    let table = [
        ("gzip", framed(1, &gzip.finish().unwrap()), Ok(())),
        ("deflate", framed(1, &deflate.finish().unwrap()), Ok(())),
        ("gzip", framed(0, &plain), Ok(())),
        ("gzip", framed(1, b"nonsense"), Err(Code::Internal)),
        ("snappy", framed(1, b"nonsense"), Err(Code::Unimplemented)),
        ("identity", framed(1, b"nonsense"), Err(Code::Internal)),
    ];
    for (encoding, wire, expected) in table {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-encoding", HeaderValue::from_static(encoding));
        let got = read_message::<ModelInferRequest, _>(
            ModelInferRequest::schema(),
            &headers,
            body(&wire, 100),
            |_| None,
        )
        .await;
        match expected {
            Ok(()) => assert_eq!(got.unwrap(), want),
            Err(code) => assert_eq!(got.unwrap_err().code(), code, "{encoding}"),
        }
    }
}

#[tokio::test]
async fn invalid_frames_are_refused() {
    let plain = request(&[4]).encode_to_vec();
    let whole = framed(0, &plain);
    let table: [(&str, Vec<u8>, Code); 6] = [
        ("empty", vec![], Code::Internal),
        ("half a prefix", whole[..3].to_vec(), Code::Internal),
        ("cut short", whole[..whole.len() - 1].to_vec(), Code::Internal),
        ("two messages", [whole.clone(), whole.clone()].concat(), Code::Unimplemented),
        ("unknown flag", framed(2, &plain), Code::Internal),
        ("too long", vec![0, 0xff, 0xff, 0xff, 0xff], Code::ResourceExhausted),
    ];
    // In small frames, and with the first message in one.
    for step in [16, whole.len()] {
        for (what, wire, code) in &table {
            let got = read_message::<ModelInferRequest, _>(
                ModelInferRequest::schema(),
                &HeaderMap::new(),
                body(wire, step),
                |_| None,
            )
            .await;
            assert_eq!(got.unwrap_err().code(), *code, "{what}");
        }
    }
}

#[tokio::test]
async fn response_decodes_as_one_message() {
    let head = ModelInferResponse { model_name: "m".into(), ..Default::default() };
    let payloads = [Bytes::from(vec![1; 3]), Bytes::new(), Bytes::from(vec![2; 70_000])];
    let response = respond_unary(&head, 6, &payloads, HeaderMap::new());
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
    let wire = collected.to_bytes();
    assert_eq!(wire[..5], framed(0, &wire[5..])[..5]);
    let got = ModelInferResponse::decode(&wire[5..]).unwrap();
    assert_eq!(got, ModelInferResponse { raw_output_contents: payloads.to_vec(), ..head });
}

#[test]
fn failure_has_headers_only() {
    let response = refuse_call(&Status::not_found("50% of\n'ü'"));
    assert_eq!(response.headers()["grpc-status"], "5");
    assert_eq!(response.headers()["grpc-message"], "50%25 of%0A'%C3%BC'");
    assert!(http_body::Body::is_end_stream(response.body()));
}
