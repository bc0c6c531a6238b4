//! Inference over protocol v2 (Open Inference Protocol), HTTP and gRPC.

use crate::http::Http;
use crate::{Best, INPUT, OUTPUT};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tonic::transport::Channel;
use trtserver_proto::v2::grpc_inference_service_client::GrpcInferenceServiceClient;
use trtserver_proto::v2::infer_parameter::ParameterChoice;
use trtserver_proto::v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use trtserver_proto::v2::{InferParameter, ModelInferRequest};

const HEADER_LENGTH: &str = "Inference-Header-Content-Length";

/// The body is JSON, then the tensor's bytes. An HTTP header holds the length of the JSON.
pub async fn over_http(http: &Http, model: &str, picture: Bytes) -> Result<Best, String> {
    let head = json!({
        "inputs": [{
            "name": INPUT, "datatype": "FP32", "shape": [1, 1, 8, 8],
            "parameters": { "binary_data_size": picture.len() },
        }],
        "outputs": [{ "name": OUTPUT, "parameters": { "classification": 1 } }],
    })
    .to_string();
    let length = head.len();
    let mut body = head.into_bytes();
    body.extend_from_slice(&picture);
    let response = http
        .post(
            &format!("/v2/models/{model}/infer"),
            &[
                (HEADER_LENGTH, length.to_string()),
                ("Content-Type", "application/octet-stream".to_owned()),
            ],
            body.into(),
        )
        .await?;
    let value: Value = serde_json::from_slice(&response.body)
        .map_err(|e| format!("HTTP {}, body is not JSON: {e}", response.status))?;
    if response.status != 200 {
        return Err(format!("HTTP {}: {}", response.status, value["error"].as_str().unwrap_or("")));
    }
    let outputs = value["outputs"].as_array().map_or(&[][..], Vec::as_slice);
    outputs
        .iter()
        .find(|output| output["name"] == OUTPUT)
        .and_then(|output| output["data"][0].as_str())
        .ok_or_else(|| format!("no {OUTPUT} in the response"))
        .and_then(best)
}

pub async fn over_grpc(channel: Channel, model: &str, picture: Bytes) -> Result<Best, String> {
    let one = InferParameter { parameter_choice: Some(ParameterChoice::Int64Param(1)) };
    let request = ModelInferRequest {
        model_name: model.to_owned(),
        inputs: vec![InferInputTensor {
            name: INPUT.to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![1, 1, 8, 8],
            ..Default::default()
        }],
        outputs: vec![InferRequestedOutputTensor {
            name: OUTPUT.to_owned(),
            parameters: BTreeMap::from([("classification".to_owned(), one)]),
        }],
        raw_input_contents: vec![picture],
        ..Default::default()
    };
    let response = GrpcInferenceServiceClient::new(channel)
        .model_infer(request)
        .await
        .map_err(|status| crate::status_text(&status))?
        .into_inner();
    let raw = response
        .outputs
        .iter()
        .position(|output| output.name == OUTPUT)
        .and_then(|index| response.raw_output_contents.get(index))
        .ok_or_else(|| format!("no {OUTPUT} in the response"))?;
    best(&first_string(raw).ok_or_else(|| format!("{OUTPUT} is truncated"))?)
}

/// First element of a BYTES tensor: each is a little-endian u32 length, then the string.
fn first_string(raw: &[u8]) -> Option<String> {
    let (length, rest) = raw.split_first_chunk::<4>()?;
    let text = rest.get(..u32::from_le_bytes(*length) as usize)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Parses a class, `score:index:label`.
fn best(class: &str) -> Result<Best, String> {
    let mut parts = class.splitn(3, ':');
    match (parts.next().and_then(|score| score.parse().ok()), parts.next(), parts.next()) {
        (Some(score), Some(_), Some(label)) => Ok(Best { label: label.to_owned(), score }),
        _ => Err(format!("`{class}` is not score:index:label")),
    }
}

#[cfg(test)]
#[path = "v2_tests.rs"]
mod tests;
