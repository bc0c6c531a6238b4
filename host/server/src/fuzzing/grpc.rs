//! ModelInfer over gRPC: the hand-written parser against prost, and whole calls.

use super::block_on::block_on;
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use trtserver_frontend_v2::grpc::fast_path::FastRequest;
use trtserver_frontend_v2::grpc::{fallback, serve_infer};
use trtserver_frontend_v2::{RequestRegions, UncheckedRequest};
use trtserver_models::OpenVersion;
use trtserver_proto::v2::ModelInferRequest;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::echo_testing::context;

static CONTEXT: LazyLock<Arc<FrontendContext>> = LazyLock::new(context);

/// A ModelInferRequest: if the fast path accepts it, prost and the fallback read the same request.
pub fn grpc_v2_fast_path(bytes: &[u8]) {
    static ECHO: LazyLock<Arc<OpenVersion>> = LazyLock::new(|| {
        CONTEXT.models.find("echo", None).unwrap_or_else(|_| panic!("no model 'echo'"))
    });
    let message = Bytes::copy_from_slice(bytes);
    let Some(fast) = FastRequest::parse(&message) else { return };
    let (model, version) = (fast.model.to_owned(), fast.version.to_owned());
    let request = ModelInferRequest::decode(message.clone())
        .unwrap_or_else(|e| panic!("the fast path reads what prost refuses: {e}"));
    assert_eq!((&model, &version), (&request.model_name, &request.model_version));
    let Some((fast, _)) = fast.into_unchecked(&ECHO, &message) else { return };
    let (slow, _) = fallback::read_request(&ECHO, request, RequestRegions::DISABLED)
        .unwrap_or_else(|e| panic!("the fast path reads what the fallback refuses: {e}"));
    assert_eq!(parts(&fast), parts(&slow));
}

fn parts(request: &UncheckedRequest) -> impl PartialEq + std::fmt::Debug {
    let tensors = request.inputs.iter();
    let tensors = tensors.map(|t| (t.index, t.dtype, t.shape.clone(), t.data.clone()));
    (request.id.clone(), request.outputs.clone(), tensors.collect::<Vec<_>>())
}

/// Two bytes for the positions where the body is split, then the body of a call. Status, message
/// and response do not depend on the split.
pub fn grpc_v2_call(bytes: &[u8]) {
    let Some(([first, second], body)) = bytes.split_first_chunk() else { return };
    // This model would execute until the call is cancelled.
    let stuck = |message| ModelInferRequest::decode(message).is_ok_and(|r| r.model_name == "stuck");
    if body.get(5..).is_some_and(stuck) {
        return;
    }
    let first = usize::from(*first) % (body.len() + 1);
    let second = first + usize::from(*second) % (body.len() - first + 1);
    let whole = call(&[body]);
    let pieces = call(&[&body[..first], &body[first..second], &body[second..]]);
    assert_eq!(whole, pieces);
    let (status, message, response) = whole;
    assert!(status == "0" || !message.is_empty(), "status {status} without a message");
    assert!(status != "0" || response.len() >= 5, "no response");
}

/// Status, message and body.
fn call(pieces: &[&[u8]]) -> (String, String, Bytes) {
    let frames: Vec<Result<_, Infallible>> = pieces
        .iter()
        .filter(|piece| !piece.is_empty())
        .map(|piece| Ok(http_body::Frame::data(Bytes::copy_from_slice(piece))))
        .collect();
    let mut request = http::Request::new(StreamBody::new(tokio_stream::iter(frames)));
    *request.method_mut() = http::Method::POST;
    let grpc = http::HeaderValue::from_static("application/grpc");
    request.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
    block_on(async {
        let response = serve_infer(&CONTEXT, request, trtserver_base::clock::now_ns()).await;
        assert_eq!(response.status(), 200);
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|e| panic!("no body: {e}"));
        let trailers = body.trailers().cloned().unwrap_or_default();
        let find = |name| head.headers.get(name).or_else(|| trailers.get(name));
        let text = |name| {
            let value = find(name).map(http::HeaderValue::as_bytes).unwrap_or_default();
            String::from_utf8_lossy(value).into_owned()
        };
        (text("grpc-status"), text("grpc-message"), body.to_bytes())
    })
}
