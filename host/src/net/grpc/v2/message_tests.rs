//! Unit tests of `message.rs`.

use super::*;
use crate::net::v2::testing::context;
use crate::request::Parameter;
use http_body_util::BodyExt;

#[tokio::test]
async fn written_as_prost_writes() {
    let served = context().models.find("echo", None).unwrap();
    let output = |name: &str, shape: &[i64], len: usize| OutputTensor {
        name: name.into(),
        dtype: DType::Fp32,
        shape: shape.into(),
        data: vec![len as u8; len].into(),
    };
    let outputs = [
        output("A", &[1, -1, 300], 64),
        output("B", &[], 100_000),
        output("", &[0], 0),
        output("C", &[i64::MAX], 5000),
        output("D", &[7], 1),
    ];
    let parameters =
        vec![("k".to_owned(), Parameter::Int(3)), ("l".to_owned(), Parameter::Bool(false))];
    for (count, parameters) in [(0, vec![]), (1, vec![]), (2, parameters.clone()), (5, parameters)]
    {
        let outputs = outputs[..count].iter().cloned().collect();
        let response = InferResponse { outputs, parameters };
        let asked = ResponseSpec { id: "7".repeat(count), ..Default::default() };
        let (mut want, payloads) = write(&served, &asked, response.clone()).unwrap();
        want.raw_output_contents = payloads;
        let (head, body) =
            respond(&served, &asked, response, HeaderMap::new()).unwrap().into_parts();
        assert_eq!(head.headers["content-type"], "application/grpc");
        let body = body.collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
        let got = body.to_bytes();
        assert_eq!(got[..5], [&[0], &(got.len() as u32 - 5).to_be_bytes()[..]].concat());
        assert_eq!(ModelInferResponse::decode(&got[5..]).unwrap(), want);
        assert_eq!(got.len() - 5, want.encoded_len());
    }
}
