//! The router: picks the frontend of a path, on the HTTP, gRPC, control, health and metrics
//! listeners.

use crate::{
    control_calls, cross_origin, guarded_router, head_check, load_service, metrics_endpoint,
    page_endpoint, reflection,
};
use ::http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use ::http::{Method, Request, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use tonic::Status;
use tonic::service::Routes;
use trtserver_base::heap;
use trtserver_config::LoadReportMode;
use trtserver_frontend_v1 as v1;
use trtserver_frontend_v2 as v2;
use trtserver_load_report::ReportFormat;
use trtserver_metrics::{MetricsFormat, MetricsPage};
use trtserver_wire::access::{AccessGate, AdmittedRequest, InFlightRequest, remove_token};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::call_kind::CallKind;
use trtserver_wire::grpc::delay_hooks::DelayHooks;
use trtserver_wire::grpc::unary;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::listener::Handler;
use trtserver_wire::load_reports::DemandedReport;
use trtserver_wire::request_body::RequestBody;
use trtserver_wire::unread::ConnectionUnread;
use trtserver_wire::{grpc, status_code};

/// The response of a listener whose requests are rare enough for a boxed future.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

/// What [`route_http`] serves requests with.
pub struct HttpRoutes {
    context: Arc<FrontendContext>,
    page: Option<Arc<MetricsPage>>,
}

impl HttpRoutes {
    pub fn new(context: Arc<FrontendContext>, page: Option<Arc<MetricsPage>>) -> Arc<Self> {
        Arc::new(Self { context, page })
    }
}

/// See [`route_http`].
#[derive(Clone)]
pub struct HttpRouter(pub Arc<HttpRoutes>);

impl Handler for HttpRouter {
    type Body = ResponseBody;

    fn for_connection(&self) -> Self {
        Self(HttpRoutes::new(Arc::clone(&self.0.context), self.0.page.clone()))
    }

    fn handle(
        &self,
        request: Request<RequestBody>,
        received_ns: u64,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + use<> {
        route_http(Arc::clone(&self.0), request, received_ns)
    }
}

/// `/v2…` and `/api…` on the HTTP port, paths like a health endpoint of v1, the metrics page if one
/// is given, and the status page.
pub async fn route_http(
    routes: Arc<HttpRoutes>,
    request: Request<RequestBody>,
    received_ns: u64,
) -> Response<ResponseBody> {
    let HttpRoutes { context, page } = &*routes;
    if let Err(error) = head_check::check_head(&request) {
        return Box::pin(head_check::refuse_head(request, error)).await;
    }
    if let Some(cors) = context.cors.clone() {
        return cross_origin::serve_cross_origin(cors, page.clone(), request, received_ns).await;
    }
    if let Some(gate) = context.access.clone() {
        let (context, page) = (Arc::clone(context), page.clone());
        return guarded_router::route_guarded_http(&gate, context, page, request, received_ns)
            .await;
    }
    let path = request.uri().path();
    let report = is_inference_path(path)
        .then(|| context.demanded_report(request.headers(), ReportFormat::Text))
        .flatten();
    let unread = Arc::clone(request.body().unread());
    if path.starts_with("/v2") {
        let mut response = v2::http::handle_request(context, request, received_ns).await;
        if let Some(report) = report {
            report.add_to(response.headers_mut());
        }
        match response.body_mut().count(&unread) {
            Ok(()) => response,
            Err(error) => v2::http::error_response(&error),
        }
    } else if is_v1_path(path) {
        // TRTIS answers any other path with 400 too; under `/v2`, Triton with 404.
        let mut response = Box::pin(v1::http::handle_request(context, request, received_ns)).await;
        if let Some(report) = report {
            report.add_to(response.headers_mut());
        }
        match response.body_mut().count(&unread) {
            Ok(()) => response,
            Err(error) => v1::http::error_response(context, &error),
        }
    } else {
        let page = page.as_ref().filter(|_| is_metrics_path(path));
        match page {
            Some(page) => serve_metrics(Arc::clone(page), request).await,
            None if context.settings.ui => page_endpoint::serve_page(&request),
            None => not_found(),
        }
    }
}

/// Paths of v1; those of v2 begin with `/v2`.
pub fn is_v1_path(path: &str) -> bool {
    path.starts_with("/api") || path.ends_with("/health/live") || path.ends_with("/health/ready")
}

/// Responses to these may have a load report. `generate` adds its own.
fn is_inference_path(path: &str) -> bool {
    path.ends_with("/infer") || path.starts_with("/api/infer/")
}

pub fn is_metrics_path(path: &str) -> bool {
    matches!(path, "/metrics" | "/metrics/")
}

/// Only the health endpoints of both generations and the health report, on the additional listener
/// for health.
pub fn route_health(
    context: Arc<FrontendContext>,
) -> impl Fn(Request<RequestBody>, u64) -> ResponseFuture + Clone {
    let routes = HttpRoutes::new(context, None);
    move |request, received_ns| {
        let path = request.uri().path();
        let served = ["/v2/health/", "/v2/trtserver/health", "/api/health"];
        if served.iter().any(|prefix| path.starts_with(prefix)) {
            return Box::pin(route_http(Arc::clone(&routes), request, received_ns));
        }
        Box::pin(async { not_found() })
    }
}

/// What [`route_http`] serves, but inference, on the control listener.
pub fn route_control(
    context: Arc<FrontendContext>,
) -> impl Fn(Request<RequestBody>, u64) -> ResponseFuture + Clone {
    let routes = HttpRoutes::new(control_context(&context), None);
    move |request, received_ns| Box::pin(route_http(Arc::clone(&routes), request, received_ns))
}

/// What [`route_grpc`] serves, but inference, on the control listener for gRPC.
pub fn route_control_grpc(context: Arc<FrontendContext>) -> GrpcRouter {
    route_grpc(control_context(&context))
}

/// The state of the frontends on a control listener, whose requests are checked as such.
fn control_context(context: &Arc<FrontendContext>) -> Arc<FrontendContext> {
    let access = context.access.clone();
    let access = access.map(|gate| AccessGate { is_control_listener: true, ..gate });
    Arc::new(FrontendContext { access, ..(**context).clone() })
}

/// The gRPC services of both generations. Inference bypasses tonic.
pub fn route_grpc(context: Arc<FrontendContext>) -> GrpcRouter {
    let (inference, health) = v2::grpc::grpc_services(Arc::clone(&context));
    let mut builder = Routes::builder();
    builder.add_service(v1::grpc::grpc_service(Arc::clone(&context)));
    builder.add_service(inference);
    builder.add_service(health);
    if context.settings.load_reports != LoadReportMode::Off {
        builder.add_service(load_service::load_service(Arc::clone(&context.load_reporter)));
    }
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

/// Serves a call, whose trailers are to have a load report.
async fn report_load(
    call: impl Future<Output = Response<GrpcBody>>,
    report: DemandedReport,
) -> Response<GrpcBody> {
    let mut response = call.await;
    report.add_to_call(&mut response);
    response
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

/// A call that the access check has admitted, with the router that serves it under its name.
struct AdmittedCall {
    router: GrpcRouter,
    in_flight: Option<InFlightRequest>,
}

impl GrpcRouter {
    /// What serves a call that the access check has admitted; `None` without a check.
    ///
    /// # Errors
    /// The status of a call that is refused.
    fn admit(
        &self,
        kind: CallKind,
        request: &mut Request<RequestBody>,
    ) -> Result<Option<Box<AdmittedCall>>, Status> {
        let Some(gate) = &self.context.access else { return Ok(None) };
        let admitted = guarded_router::admit_call(gate, &self.context, kind, request);
        let AdmittedRequest { context, in_flight } = admitted.map_err(|e| e.grpc_status())?;
        remove_token(request.headers_mut());
        let router = Self { context, ..self.clone() };
        Ok(Some(Box::new(AdmittedCall { router, in_flight })))
    }

    /// As [`GrpcRouter::route`], with the delays that the environment asks for.
    fn route_delayed(
        &self,
        kind: CallKind,
        request: Request<RequestBody>,
        received_ns: u64,
    ) -> (bool, RoutedCall<impl Future<Output = Response<GrpcBody>> + Send + use<>>) {
        let delays = self.hooks.as_ref().and_then(|hooks| hooks.delays(kind.is_inference()));
        let report = kind
            .is_inference()
            .then(|| self.context.demanded_report(request.headers(), ReportFormat::Binary))
            .flatten();
        let (waits, mut call) = self.route(kind, request, received_ns);
        if let Some(report) = report {
            let reported = report_load(call, report);
            call = RoutedCall::Boxed { response: Box::pin(reported) };
        }
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
                let caller = self.context.caller.clone();
                let response = control_calls::serve_control(self.routes.clone(), request, caller);
                (false, RoutedCall::Boxed { response: Box::pin(response) })
            }
        }
    }
}

impl Handler for GrpcRouter {
    type Body = GrpcBody;

    fn for_connection(&self) -> Self {
        Self { context: Arc::new((*self.context).clone()), ..self.clone() }
    }

    fn handle(
        &self,
        mut request: Request<RequestBody>,
        received_ns: u64,
    ) -> impl Future<Output = Response<GrpcBody>> + Send + use<> {
        let unread = Arc::clone(request.body().unread());
        let kind = CallKind::from_path(request.uri().path());
        let begun = request.body().begin_call(kind.class(), kind.held_bytes(&request));
        let admitted = match begun {
            Ok(()) => self.admit(kind, &mut request),
            Err(error) => {
                // The heads of all calls of one read were held until here.
                heap::trim_soon();
                Err(status_code::to_grpc_status(error))
            }
        };
        let (waits, call) = match admitted {
            Ok(None) => self.route_delayed(kind, request, received_ns),
            Ok(Some(admitted)) => {
                let AdmittedCall { router, in_flight } = *admitted;
                let (waits, call) = router.route_delayed(kind, request, received_ns);
                let response = async move {
                    let _in_flight = in_flight;
                    call.await
                };
                (waits, RoutedCall::Boxed { response: Box::pin(response) })
            }
            Err(status) => {
                let refused = unary::refuse_call(&status);
                (false, RoutedCall::Boxed { response: Box::pin(std::future::ready(refused)) })
            }
        };
        small(CountedCall { call, unread, waits, below_half: None })
    }
}

/// The metrics page; any other path is an empty page (docs/protocol/v2.md §5).
pub fn route_metrics(
    context: Arc<FrontendContext>,
    page: Arc<MetricsPage>,
) -> impl Fn(Request<RequestBody>, u64) -> ResponseFuture + Clone {
    move |request, _| {
        let admitted = match (head_check::check_head(&request), &context.access) {
            (Err(error), _) => return Box::pin(head_check::refuse_head(request, error)),
            (Ok(()), None) => Ok(request),
            (Ok(()), Some(gate)) => guarded_router::admit_metrics(gate, &context, request),
        };
        match admitted {
            Ok(request) => serve_metrics(Arc::clone(&page), request),
            Err(refused) => refused,
        }
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

pub(super) fn not_found() -> Response<ResponseBody> {
    plain(StatusCode::NOT_FOUND, "text/plain", r#"{"error":"Not Found"}"#.to_owned())
}

pub(super) fn plain(
    status: StatusCode,
    kind: &'static str,
    text: String,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
