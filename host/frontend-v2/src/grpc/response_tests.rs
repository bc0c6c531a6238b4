//! Unit tests of `response.rs`.

use super::*;
use http::HeaderMap;
use http_body_util::BodyExt;
use trtserver_proto::v2::ModelStreamInferResponse;
use trtserver_proto::v2::model_infer_response::InferOutputTensor;
use trtserver_request::{DType, ParameterValue};
use trtserver_wire::echo_testing::context;
use trtserver_wire::grpc::unary;

/// The message struct of a response.
fn message(
    served: &OpenVersion,
    spec: &ResponseSpec,
    response: &InferResponse,
) -> ModelInferResponse {
    let output = |o: &OutputTensor| InferOutputTensor {
        name: o.name.to_string(),
        datatype: o.dtype.v2_name().to_owned(),
        shape: o.shape.to_vec(),
        ..Default::default()
    };
    let parameter = |(k, v): &(String, ParameterValue)| (k.clone(), parameters::to_grpc(v));
    ModelInferResponse {
        model_name: served.name.to_string(),
        model_version: served.version_text.to_string(),
        id: spec.id.clone(),
        parameters: response.parameters.iter().map(parameter).collect(),
        outputs: response.outputs.iter().map(output).collect(),
        raw_output_contents: response.outputs.iter().map(|o| o.data.payload().clone()).collect(),
    }
}

#[tokio::test]
async fn unary_and_stream_encode_as_prost() {
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
    let parameters = vec![
        ("k".to_owned(), ParameterValue::Int(3)),
        ("l".to_owned(), ParameterValue::Bool(false)),
    ];
    for (count, parameters) in [(0, vec![]), (1, vec![]), (2, parameters.clone()), (5, parameters)]
    {
        let outputs = outputs[..count].iter().cloned().collect();
        let response = InferResponse { outputs, parameters, unread: None };
        let spec = ResponseSpec { id: "7".repeat(count), ..Default::default() };
        let want = message(&served, &spec, &response);
        let head = ResponseHead::from_response(&served, &spec, &response);
        let payloads = response.outputs.iter().map(|o| o.data.payload());
        let encode = |to: &mut Vec<u8>| head.encode(to);
        let encoded =
            unary::respond_with(head.len(), encode, RAW_OUTPUTS, payloads, HeaderMap::new());
        let (parts, body) = encoded.into_parts();
        for error in ["", "e"] {
            let head = ResponseHead::from_response(&served, &spec, &response).mark_final(true);
            let Encoded { head: mut got, field, payloads, .. } = head.into_stream_response(error);
            encoding::bytes::encode_repeated(field, &payloads, &mut got);
            let got = ModelStreamInferResponse::decode(&*got).unwrap();
            let mut want = want.clone();
            let last = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(true)) };
            want.parameters.insert("triton_final_response".to_owned(), last);
            assert_eq!(got.error_message, error);
            assert_eq!(got.infer_response.unwrap(), want);
        }
        assert_eq!(parts.headers["content-type"], "application/grpc");
        let body = body.collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
        let got = body.to_bytes();
        assert_eq!(got[..5], [&[0], &(got.len() as u32 - 5).to_be_bytes()[..]].concat());
        assert_eq!(ModelInferResponse::decode(&got[5..]).unwrap(), want);
        assert_eq!(got.len() - 5, want.encoded_len());
    }
}
