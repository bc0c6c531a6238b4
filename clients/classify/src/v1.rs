//! Inference over protocol v1 (TRTIS 2019), HTTP and gRPC.

use crate::http::Http;
use crate::{Best, INPUT, OUTPUT};
use bytes::Bytes;
use prost::Message;
use tonic::transport::Channel;
use trtserver_proto::v1::grpc_service_client::GrpcServiceClient;
use trtserver_proto::v1::infer_request_header::{self as header, output::Class};
use trtserver_proto::v1::{InferRequest, InferRequestHeader, InferResponseHeader};

/// The request header is protobuf text in an HTTP header. The response header is binary and follows the outputs.
pub async fn over_http(http: &Http, model: &str, picture: Bytes) -> Result<Best, String> {
    let request = format!(
        "batch_size: 1 input {{ name: \"{INPUT}\" dims: 1 dims: 8 dims: 8 }} \
         output {{ name: \"{OUTPUT}\" cls {{ count: 1 }} }}"
    );
    let response = http
        .post(
            &format!("/api/infer/{model}?format=binary"),
            &[
                ("NV-InferRequest", request),
                ("Content-Type", "application/octet-stream".to_owned()),
            ],
            picture,
        )
        .await?;
    let status = response
        .header("NV-Status")
        .ok_or_else(|| format!("HTTP {} without an NV-Status header", response.status))?;
    if response.status != 200 || !status.contains("code: SUCCESS") {
        return Err(format!("HTTP {}, NV-Status: {status}", response.status));
    }
    // Only classes were requested, so no raw output precedes the header.
    let header = InferResponseHeader::decode(response.body)
        .map_err(|e| format!("cannot decode the response header: {e}"))?;
    best(header)
}

pub async fn over_grpc(channel: Channel, model: &str, picture: Bytes) -> Result<Best, String> {
    let request = InferRequest {
        model_name: model.to_owned(),
        model_version: -1,
        meta_data: Some(InferRequestHeader {
            batch_size: 1,
            input: vec![header::Input {
                name: INPUT.to_owned(),
                dims: vec![1, 8, 8],
                ..Default::default()
            }],
            output: vec![header::Output {
                name: OUTPUT.to_owned(),
                cls: Some(Class { count: 1 }),
                ..Default::default()
            }],
            ..Default::default()
        }),
        raw_input: vec![picture],
    };
    let response = GrpcServiceClient::new(channel)
        .infer(request)
        .await
        .map_err(|status| crate::status_text(&status))?
        .into_inner();
    // v1 reports errors inside the message; the RPC itself succeeds.
    let status = response.request_status.unwrap_or_default();
    if status.code() != trtserver_proto::v1::RequestStatusCode::Success {
        return Err(format!("{}: {}", status.code().as_str_name(), status.msg));
    }
    best(response.meta_data.unwrap_or_default())
}

fn best(header: InferResponseHeader) -> Result<Best, String> {
    let class = header
        .output
        .into_iter()
        .find(|output| output.name == OUTPUT)
        .and_then(|output| output.batch_classes.into_iter().next())
        .and_then(|classes| classes.cls.into_iter().next())
        .ok_or_else(|| format!("no class of {OUTPUT} in the response"))?;
    Ok(Best { label: class.label, score: f64::from(class.value) })
}
