//! The router: picks the frontend of a path, on the HTTP, gRPC, health and metrics listeners.

use crate::{head_check, metrics_endpoint, reflection};
use ::http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use ::http::{Method, Request, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use tonic::Status;
use tonic::service::Routes;
use tower::Service;
use trtserver_base::heap;
use trtserver_frontend_v1 as v1;
use trtserver_frontend_v2 as v2;
use trtserver_metrics::{MetricsFormat, MetricsPage};
use trtserver_wire::access::{self, AccessRefusal, Caller, CallerProtocol};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::disconnect::RequestBody;
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::call_kind::CallKind;
use trtserver_wire::grpc::delay_hooks::DelayHooks;
use trtserver_wire::grpc::unary;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::listener::Handler;
use trtserver_wire::unread::ConnectionUnread;
use trtserver_wire::{grpc, status_code};

/// The response of a listener whose requests are rare enough for a boxed future.
type ResponseFuture = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

/// `/v2…` and `/api…` on the HTTP port, paths like a health endpoint of v1, and the metrics page if
/// one is given.
pub async fn route_http(
    context: Arc<FrontendContext>,
    page: Option<Arc<MetricsPage>>,
    request: Request<RequestBody>,
    received_ns: u64,
) -> Response<ResponseBody> {
    if let Err(error) = head_check::check_head(&request) {
        return Box::pin(head_check::refuse_head(request, error)).await;
    }
    let path = request.uri().path();
    let unread = Arc::clone(request.body().unread());
    let caller = Caller { headers: request.headers() };
    if path.starts_with("/v2") {
        let groups = || v2::http::groups(request.method(), path);
        let mut response =
            match access::check_access(&context.settings, CallerProtocol::Http, &caller, groups) {
                Ok(()) => v2::http::handle_request(&context, request, received_ns).await,
                Err(refusal) => Box::pin(v2::http::refuse(&refusal, request.into_body())).await,
            };
        match response.body_mut().count(&unread) {
            Ok(()) => response,
            Err(error) => v2::http::error_response(&error),
        }
    } else if path.starts_with("/api")
        || path.ends_with("/health/live")
        || path.ends_with("/health/ready")
    {
        // TRTIS answers any other path with 400 too; under `/v2`, Triton with 404.
        let groups = || v1::http::groups(path);
        let mut response =
            match access::check_access(&context.settings, CallerProtocol::Http, &caller, groups) {
                Ok(()) => Box::pin(v1::http::handle_request(&context, request, received_ns)).await,
                Err(refusal) => {
                    Box::pin(v1::http::refuse(&context, &refusal, request.into_body())).await
                }
            };
        match response.body_mut().count(&unread) {
            Ok(()) => response,
            Err(error) => v1::http::error_response(&context, &error),
        }
    } else {
        let page = page.filter(|_| matches!(path, "/metrics" | "/metrics/"));
        match page {
            Some(page) => serve_metrics(page, request).await,
            None => not_found(),
        }
    }
}

/// Only the health endpoints of both generations and the health report, on the additional listener
/// for health.
pub fn route_health(
    context: Arc<FrontendContext>,
) -> impl Fn(Request<RequestBody>, u64) -> ResponseFuture + Clone {
    move |request, received_ns| {
        let path = request.uri().path();
        let served = ["/v2/health/", "/v2/trtserver/health", "/api/health"];
        if served.iter().any(|prefix| path.starts_with(prefix)) {
            return Box::pin(route_http(Arc::clone(&context), None, request, received_ns));
        }
        Box::pin(async { not_found() })
    }
}

/// The gRPC services of both generations. Inference bypasses tonic.
pub fn route_grpc(context: Arc<FrontendContext>) -> GrpcRouter {
    let (inference, health) = v2::grpc::grpc_services(Arc::clone(&context));
    let mut builder = Routes::builder();
    builder.add_service(v1::grpc::grpc_service(Arc::clone(&context)));
    builder.add_service(inference);
    builder.add_service(health);
    if let Err(e) = reflection::add_services(&mut builder) {
        tracing::error!("gRPC reflection is not served: {e}");
    }
    let hooks = DelayHooks::from_env(&|name| std::env::var(name).ok()).map(Arc::new);
    GrpcRouter { context, routes: builder.routes().prepare(), hooks }
}

pin_project_lite::pin_project! {
    /// The future of a call. All but v2's ModelInfer are boxed, so that its future does not grow to
    /// their size.
    #[project = RoutedProjection]
    enum RoutedCall<F> {
        ModelInfer { #[pin] response: F },
        Boxed { response: Pin<Box<dyn Future<Output = Response<GrpcBody>> + Send>> },
    }
}

impl<F: Future<Output = Response<GrpcBody>>> Future for RoutedCall<F> {
    type Output = Response<GrpcBody>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Response<GrpcBody>> {
        match self.project() {
            RoutedProjection::ModelInfer { response } => response.poll(cx),
            RoutedProjection::Boxed { response } => response.as_mut().poll(cx),
        }
    }
}

pin_project_lite::pin_project! {
    /// A call whose response is counted as unread on its connection. An inference call begins only
    /// while less than half of the connection's limit is unread.
    struct CountedCall<F> {
        #[pin]
        call: RoutedCall<F>,
        unread: Arc<ConnectionUnread>,
        // It has not begun.
        waits: bool,
        below_half: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    }
}

impl<F: Future<Output = Response<GrpcBody>>> Future for CountedCall<F> {
    type Output = Response<GrpcBody>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Response<GrpcBody>> {
        let this = self.project();
        if *this.waits {
            if this.unread.is_half_full() {
                let wait = || Box::pin(Arc::clone(this.unread).wait_below_half()) as _;
                ready!(this.below_half.get_or_insert_with(wait).as_mut().poll(cx));
            }
            (*this.waits, *this.below_half) = (false, None);
        }
        let mut response = ready!(this.call.poll(cx));
        Poll::Ready(match response.body_mut().count(this.unread) {
            Ok(()) => response,
            Err(error) => grpc::unary::refuse_call(&status_code::to_grpc_status(error)),
        })
    }
}

/// Size of the future of a call, of which a client may have many: with hyper's part the task of a
/// call takes at most 2 KiB.
const MAX_CALL: usize = 1536;

/// The same future, which is small: checked when the server is compiled.
fn small<F>(call: F) -> F {
    const { assert!(size_of::<F>() <= MAX_CALL) };
    call
}

/// See [`route_grpc`].
#[derive(Clone)]
pub struct GrpcRouter {
    context: Arc<FrontendContext>,
    routes: Routes,
    /// `None` without a hook, which is the rule.
    hooks: Option<Arc<DelayHooks>>,
}

impl GrpcRouter {
    /// The status of a call that the access check refuses.
    fn access_refusal(&self, request: &Request<RequestBody>) -> Option<Status> {
        let caller = Caller { headers: request.headers() };
        let groups = || access::groups_of_rpc(request.uri().path());
        let checked =
            access::check_access(&self.context.settings, CallerProtocol::Grpc, &caller, groups);
        let AccessRefusal::MissingHeader(header) = checked.err()?;
        let why = format!("This protocol is restricted, expecting header '{header}'");
        Some(Status::unavailable(why))
    }

    /// As [`GrpcRouter::route`], with the delays that the environment asks for.
    fn route_delayed(
        &self,
        kind: CallKind,
        request: Request<RequestBody>,
        received_ns: u64,
    ) -> (bool, RoutedCall<impl Future<Output = Response<GrpcBody>> + Send + use<>>) {
        let delays = self.hooks.as_ref().and_then(|hooks| hooks.delays(kind.is_inference()));
        let (waits, call) = self.route(kind, request, received_ns);
        let Some(delays) = delays else { return (waits, call) };
        (waits, RoutedCall::Boxed { response: Box::pin(delays.around(Box::pin(call))) })
    }

    /// The call, and whether it waits while the connection has too many unread responses.
    fn route(
        &self,
        kind: CallKind,
        mut request: Request<RequestBody>,
        received_ns: u64,
    ) -> (bool, RoutedCall<impl Future<Output = Response<GrpcBody>> + Send + use<>>) {
        let unread = Arc::clone(request.body().unread());
        match kind {
            CallKind::InferV2 => {
                let response = v2::grpc::serve_infer(&self.context, request, received_ns);
                (true, RoutedCall::ModelInfer { response })
            }
            CallKind::InferV1 => {
                let response = v1::grpc::serve_infer(&self.context, request, received_ns);
                (true, RoutedCall::Boxed { response: Box::pin(response) })
            }
            CallKind::StreamV1 => {
                request.body_mut().allow_pauses();
                let response = v1::grpc::serve_stream_infer(&self.context, request, unread);
                (false, RoutedCall::Boxed { response: Box::pin(std::future::ready(response)) })
            }
            CallKind::Stream2018 => {
                request.body_mut().allow_pauses();
                let response = v1::grpc::infer_stream(&self.context, request, Arc::clone(&unread));
                (false, RoutedCall::Boxed { response: Box::pin(std::future::ready(response)) })
            }
            CallKind::StreamV2 => {
                request.body_mut().allow_pauses();
                let response = v2::grpc::serve_stream_infer(&self.context, request, unread);
                (false, RoutedCall::Boxed { response: Box::pin(std::future::ready(response)) })
            }
            CallKind::Other => {
                // The requests of reflection are a stream.
                let reflection = request.uri().path().starts_with(reflection::PATH);
                let mut routes = self.routes.clone();
                if reflection {
                    request.body_mut().allow_pauses();
                }
                let response = async move {
                    // tonic refuses requests that are not gRPC calls.
                    let call = unary::check_call(request.method(), request.headers());
                    let served = if call.is_ok() && !reflection {
                        match unary::receive_control(request).await {
                            Ok(request) => routes.call(request).await,
                            Err(status) => return unary::refuse_call(&status),
                        }
                    } else {
                        routes.call(request).await
                    };
                    match served {
                        Ok(response) => response.map(GrpcBody::from),
                        Err(never) => match never {},
                    }
                };
                (false, RoutedCall::Boxed { response: Box::pin(response) })
            }
        }
    }
}

impl Handler for GrpcRouter {
    type Body = GrpcBody;

    fn handle(
        &self,
        request: Request<RequestBody>,
        received_ns: u64,
    ) -> impl Future<Output = Response<GrpcBody>> + Send + use<> {
        let unread = Arc::clone(request.body().unread());
        let kind = CallKind::from_path(request.uri().path());
        let begun = request.body().begin_call(kind.class(), kind.held_bytes(&request));
        let refused = match begun {
            Ok(()) => self.access_refusal(&request),
            Err(error) => {
                // The heads of all calls of one read were held until here.
                heap::trim_soon();
                Some(status_code::to_grpc_status(error))
            }
        };
        let (waits, call) = match refused {
            None => self.route_delayed(kind, request, received_ns),
            Some(status) => {
                let refused = unary::refuse_call(&status);
                (false, RoutedCall::Boxed { response: Box::pin(std::future::ready(refused)) })
            }
        };
        small(CountedCall { call, unread, waits, below_half: None })
    }
}

/// The metrics page; any other path is an empty page (docs/protocol/v2.md §5).
pub fn route_metrics(
    page: Arc<MetricsPage>,
) -> impl Fn(Request<RequestBody>, u64) -> ResponseFuture + Clone {
    move |request, _| match head_check::check_head(&request) {
        Ok(()) => serve_metrics(Arc::clone(&page), request),
        Err(error) => Box::pin(head_check::refuse_head(request, error)),
    }
}

/// The metrics page, for a request whose head was checked.
fn serve_metrics(page: Arc<MetricsPage>, request: Request<RequestBody>) -> ResponseFuture {
    Box::pin(async move {
        if request.method() != Method::GET {
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", String::new());
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return refused;
        }
        match request.uri().path() {
            "/metrics" | "/metrics/" => {
                metrics_endpoint::metrics_response(page, request.headers()).await
            }
            _ => plain(StatusCode::OK, MetricsFormat::Text.content_type(), String::new()),
        }
    })
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
