//! Unary calls and streams of v2 gRPC, against models served by threads.

use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use prost::Message;
use std::sync::Arc;
use tokio_stream::StreamExt;
use trtserver_proto::codec::Encoded;
use trtserver_proto::v2::infer_parameter::ParameterChoice;
use trtserver_proto::v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use trtserver_proto::v2::*;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::echo_testing::context;
use trtserver_wire::grpc::unary;
use trtserver_wire::unread::ConnectionUnread;

fn request(model: &str, id: &str) -> ModelInferRequest {
    ModelInferRequest {
        model_name: model.into(),
        id: id.into(),
        inputs: vec![InferInputTensor {
            name: "FP".into(),
            datatype: "FP32".into(),
            shape: vec![1, 2],
            ..Default::default()
        }],
        raw_input_contents: vec![Bytes::from_static(b"01234567")],
        ..Default::default()
    }
}

async fn unary(
    ctx: &Arc<FrontendContext>,
    request: &ModelInferRequest,
) -> Result<ModelInferResponse, (String, String)> {
    let message = request.encode_to_vec();
    let mut wire = vec![0];
    wire.extend_from_slice(&(message.len() as u32).to_be_bytes());
    wire.extend_from_slice(&message);
    let call = http::Request::post("/inference.GRPCInferenceService/ModelInfer")
        .header("content-type", "application/grpc")
        .body(Full::new(Bytes::from(wire)))
        .unwrap();
    let (head, body) = serve_infer(ctx, call, trtserver_base::clock::now_ns()).await.into_parts();
    let body = body.collect().await.unwrap();
    if let Some(status) = head.headers.get("grpc-status") {
        let text = |v: &http::HeaderValue| v.to_str().unwrap().to_owned();
        let message = head.headers.get("grpc-message").map(text).unwrap_or_default();
        return Err((text(status), message));
    }
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    Ok(ModelInferResponse::decode(&body.to_bytes()[5..]).unwrap())
}

#[tokio::test]
async fn unary_call_gets_one_response() {
    let ctx = context();
    let got = unary(&ctx, &request("echo", "7")).await.unwrap();
    assert_eq!(
        (got.model_name.as_str(), got.model_version.as_str(), got.id.as_str()),
        ("echo", "3", "7")
    );
    assert_eq!(got.raw_output_contents, [Bytes::from_static(b"01234567")]);
    assert_eq!(got.outputs[0].shape, [1, 2]);
    assert_eq!(ctx.state.in_flight(), 0);

    let table = [
        ("absent", "", "5", "Request for unknown model: 'absent' is not found"),
        ("echo", "2", "5", "Request for unknown model: 'echo' version 2 is not found"),
        (
            "echo",
            "x",
            "3",
            "failed to get model version from specified version string 'x' (details: stol), \
             version should be an integral value > 0",
        ),
        ("broken", "", "13", "out of order"),
        ("twice", "", "13", "expected a single response, got 2"),
        (
            "stream",
            "",
            "12",
            "ModelInfer RPC doesn't support models with decoupled transaction policy",
        ),
    ];
    for (model, version, status, message) in table {
        let request = ModelInferRequest { model_version: version.into(), ..request(model, "") };
        let want = Err((status.to_owned(), message.to_owned()));
        assert_eq!(unary(&ctx, &request).await, want, "{model}");
    }
    let failed = ctx.models.find("broken", None).unwrap().stats.snapshot().total().failed;
    assert_eq!(failed.count, 1);
}

/// The errors have Triton's texts.
#[tokio::test]
async fn invalid_parts_are_refused_with_texts_of_v2() {
    let ctx = context();
    let good = request("echo", "");
    let parameter = |key: &str, value| {
        [(key.to_owned(), InferParameter { parameter_choice: Some(value) })].into()
    };
    let output = |key: &str, value| ModelInferRequest {
        outputs: vec![InferRequestedOutputTensor {
            name: good.inputs[0].name.clone(),
            parameters: parameter(key, value),
        }],
        ..good.clone()
    };
    let input = &good.inputs[0];
    let extra = ["X", "Y"].map(|name| InferInputTensor { name: name.into(), ..input.clone() });
    let table = [
        (
            ModelInferRequest {
                inputs: [vec![input.clone()], extra.to_vec()].concat(),
                ..good.clone()
            },
            "[request id: <id_unknown>] expected number of inputs between 0 and 2 but got 3 inputs for \
             model 'echo'. Got input(s) ['FP','X','Y'], but missing required input(s) ]. Please provide all \
             required input(s).",
        ),
        (
            ModelInferRequest {
                inputs: vec![InferInputTensor { datatype: "fp32".into(), ..input.clone() }],
                ..good.clone()
            },
            "[request id: <id_unknown>] inference input 'FP' data-type is '<invalid>', but model 'echo' expects \
             'FP32'",
        ),
        (
            output("shared_memory_offset", ParameterChoice::Int64Param(1)),
            "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for \
             tensor 'FP'",
        ),
        (
            output("shared_memory_region", ParameterChoice::StringParam("r".into())),
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for \
             tensor 'FP'",
        ),
    ];
    for (request, message) in table {
        let want = Err(("3".to_owned(), message.to_owned()));
        assert_eq!(unary(&ctx, &request).await, want);
    }
}

#[tokio::test]
async fn non_grpc_requests_get_an_http_status() {
    let ctx = context();
    for (method, content, status) in [
        ("GET", "application/grpc", 405),
        ("POST", "text/plain", 415),
        ("POST", "application/grpc", 200),
    ] {
        let call = http::Request::builder()
            .method(method)
            .header("content-type", content)
            .body(Full::new(Bytes::new()))
            .unwrap();
        assert_eq!(serve_infer(&ctx, call, 0).await.status(), status);
    }
    assert_eq!(unary::MAX_MESSAGE, 2_147_483_647);
}

fn unread() -> Arc<ConnectionUnread> {
    ConnectionUnread::new(context().settings.unread)
}

/// Decodes a message of a stream.
fn decoded(message: &Encoded) -> ModelStreamInferResponse {
    let mut bytes = message.head.clone();
    prost::encoding::bytes::encode_repeated(message.field, &message.payloads, &mut bytes);
    ModelStreamInferResponse::decode(&*bytes).unwrap()
}

/// The responses of a stream, each as `id:final:outputs`, `id!error`, or `status`.
async fn stream(requests: Vec<ModelInferRequest>, true_status: bool) -> Vec<String> {
    let incoming = tokio_stream::iter(requests.into_iter().map(Ok));
    let mut responses =
        super::stream::answer_requests(context(), incoming, stream_call(true_status), unread());
    let mut got = Vec::new();
    while let Some(response) = responses.next().await {
        got.push(match response {
            Err(status) => format!("{:?}", status.code()),
            Ok(message) => {
                let message = decoded(&message);
                let response = message.infer_response.unwrap();
                let last = response.parameters.get("triton_final_response");
                let last = match last.and_then(|p| p.parameter_choice.clone()) {
                    Some(ParameterChoice::BoolParam(last)) => last.to_string(),
                    _ => "unset".to_owned(),
                };
                assert_eq!(response.outputs.len(), response.raw_output_contents.len());
                if message.error_message.is_empty() {
                    format!("{}:{last}:{}", response.id, response.outputs.len())
                } else {
                    format!("{}!{}:{last}", response.id, message.error_message)
                }
            }
        });
    }
    got
}

#[tokio::test]
async fn stream_responses_of_ordinary_models_are_ordered() {
    let requests = ["echo", "broken", "absent", "twice", "silent", "echo"];
    let requests = requests.iter().enumerate().map(|(i, m)| request(m, &i.to_string())).collect();
    let want = [
        "0:true:1",
        "1!out of order:true",
        "2!Request for unknown model: 'absent' is not found:unset",
        "3:false:1",
        "3:true:1",
        "4!expected a single response, got 0:true",
        "5:true:1",
    ];
    assert_eq!(stream(requests, false).await, want);
}

#[tokio::test]
async fn decoupled_model_streams_any_number_of_responses() {
    let empty = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(true)) };
    let opted_in = ModelInferRequest {
        parameters: [("triton_enable_empty_final_response".to_owned(), empty)].into(),
        ..request("none", "2")
    };
    let mut got = stream(vec![request("stream", "0"), request("none", "1"), opted_in], false).await;
    got.sort();
    assert_eq!(got, ["0:false:1", "0:true:1", "2:true:0"]);
}

#[tokio::test]
async fn true_status_ends_the_stream_with_the_first_error() {
    let requests = vec![request("echo", "0"), request("absent", "1"), request("echo", "2")];
    assert_eq!(stream(requests, true).await, ["0:true:1", "NotFound"]);
}

#[tokio::test]
async fn dropped_stream_cancels_its_requests() {
    let ctx = context();
    let incoming = tokio_stream::StreamExt::chain(
        tokio_stream::iter([Ok(request("stuck", "0"))]),
        tokio_stream::pending(),
    );
    let responses =
        super::stream::answer_requests(Arc::clone(&ctx), incoming, stream_call(false), unread());
    while ctx.state.in_flight() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    drop(responses);
    let served = ctx.models.find("stuck", None).unwrap();
    // In the queue or during execution.
    let cancelled = || served.stats.snapshot().cancelled.iter().sum::<u64>();
    while ctx.state.in_flight() > 0 || cancelled() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// Futures are `Send`, because hyper's connections are tasks.
#[allow(dead_code)]
fn futures_can_move(ctx: &Arc<FrontendContext>, request: http::Request<hyper::body::Incoming>) {
    fn check(_: impl Send) {}
    check(serve_infer(ctx, request, 0));
    check(grpc_services(Arc::clone(ctx)));
}

fn stream_call(true_status: bool) -> super::stream::StreamCall {
    super::stream::StreamCall { true_status, deadline_ns: 0, forwarded: None, trace_context: None }
}
