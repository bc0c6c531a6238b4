//! Which front end answers: the paths of both generations on the HTTP, gRPC, health and metrics sockets.

use super::context::Context;
use super::grpc::body::GrpcBody;
use super::http::body::ResponseBody;
use super::listener::Handler;
use super::peer::RequestBody;
use super::{grpc, http};
use crate::metrics::{self, Gpus};
use ::http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use ::http::{Method, Request, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use tonic::service::Routes;
use tower::Service;

/// The two unary inference calls, which carry the tensors.
const INFER_V1: &str = "/nvidia.inferenceserver.GRPCService/Infer";
const INFER_V2: &str = "/inference.GRPCInferenceService/ModelInfer";

/// What a door returns for a request, where it is not worth a future of its own.
type Answer = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

/// `/v2…` and `/api…` on the HTTP port.
pub async fn http(
    context: Arc<Context>,
    request: Request<RequestBody>,
    received_ns: u64,
) -> Response<ResponseBody> {
    let path = request.uri().path();
    if path.starts_with("/v2") {
        http::v2::handle(&context, request, received_ns).await
    } else if path.starts_with("/api") {
        Box::pin(http::v1::handle(&context, request, received_ns)).await
    } else {
        not_found()
    }
}

/// Health of both generations alone, on `--http-health-port`.
pub fn health(context: Arc<Context>) -> impl Fn(Request<RequestBody>, u64) -> Answer + Clone {
    move |request, received_ns| {
        let path = request.uri().path();
        if path.starts_with("/v2/health/") || path.starts_with("/api/health") {
            return Box::pin(http(Arc::clone(&context), request, received_ns));
        }
        Box::pin(async { not_found() })
    }
}

/// The gRPC services of both generations. Unary inference goes past tonic.
pub fn grpc(context: Arc<Context>) -> Grpc {
    let (inference, health) = grpc::v2::services(Arc::clone(&context));
    let mut builder = Routes::builder();
    builder.add_service(grpc::v1::service(Arc::clone(&context)));
    builder.add_service(inference);
    builder.add_service(health);
    Grpc { context, routes: builder.routes().prepare() }
}

pin_project_lite::pin_project! {
    /// How a call is answered. What is not v2's inference is in boxes, so that the future of every call is not as
    /// large as theirs.
    #[project = CallProjection]
    enum Call<F> {
        Inference { #[pin] answer: F },
        Other { answer: Pin<Box<dyn Future<Output = Response<GrpcBody>> + Send>> },
    }
}

impl<F: Future<Output = Response<GrpcBody>>> Future for Call<F> {
    type Output = Response<GrpcBody>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Response<GrpcBody>> {
        match self.project() {
            CallProjection::Inference { answer } => answer.poll(cx),
            CallProjection::Other { answer } => answer.as_mut().poll(cx),
        }
    }
}

/// See [`grpc`].
#[derive(Clone)]
pub struct Grpc {
    context: Arc<Context>,
    routes: Routes,
}

impl Handler for Grpc {
    type Body = GrpcBody;

    fn answer(
        &self,
        request: Request<RequestBody>,
        received_ns: u64,
    ) -> impl Future<Output = Response<GrpcBody>> + Send + use<> {
        match request.uri().path() {
            INFER_V2 => {
                Call::Inference { answer: grpc::v2::infer(&self.context, request, received_ns) }
            }
            INFER_V1 => {
                let context = Arc::clone(&self.context);
                let answer = async move { grpc::v1::infer(&context, request, received_ns).await };
                Call::Other { answer: Box::pin(answer) }
            }
            _ => {
                let mut routes = self.routes.clone();
                let answer = async move {
                    match routes.call(request).await {
                        Ok(response) => response.map(GrpcBody::from),
                        Err(never) => match never {},
                    }
                };
                Call::Other { answer: Box::pin(answer) }
            }
        }
    }
}

/// Prometheus text; any other path is an empty page (contract/v2 §5).
pub fn metrics(
    context: Arc<Context>,
    gpus: Arc<Option<Gpus>>,
) -> impl Fn(Request<RequestBody>, u64) -> Answer + Clone {
    move |request, _| {
        let (context, gpus) = (Arc::clone(&context), Arc::clone(&gpus));
        Box::pin(async move {
            if request.method() != Method::GET {
                let mut refused =
                    plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", String::new());
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
                return refused;
            }
            let text = match request.uri().path() {
                "/metrics" | "/metrics/" => {
                    // NVML may take milliseconds; the network threads have better things to do.
                    let gather = move || metrics::text(&context.repository, gpus.as_ref().as_ref());
                    tokio::task::spawn_blocking(gather).await.unwrap_or_default()
                }
                _ => String::new(),
            };
            plain(StatusCode::OK, "text/plain; charset=utf-8", text)
        })
    }
}

fn not_found() -> Response<ResponseBody> {
    plain(StatusCode::NOT_FOUND, "text/plain", r#"{"error":"Not Found"}"#.to_owned())
}

fn plain(status: StatusCode, kind: &'static str, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
