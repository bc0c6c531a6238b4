//! Pages of other origins, which browsers let call the server only if its responses say so (CORS).
//! Preflight requests are answered here; they have no token, and nothing is told of a model.

use crate::head_check::shown;
use crate::router::{self, HttpRoutes, ResponseFuture, plain};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use std::sync::Arc;
use trtserver_config::CorsOrigins;
use trtserver_metrics::MetricsPage;
use trtserver_wire::context::{CorsGate, FrontendContext};
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::request_body::RequestBody;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST");
const EVERY: HeaderValue = HeaderValue::from_static("*");
/// Seconds for which a browser may remember the answer to a preflight request.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("origin");
const VARY_PREFLIGHT: HeaderValue =
    HeaderValue::from_static("access-control-request-method, access-control-request-headers");

/// The state of the frontends on the HTTP listener, which looks at origins if the settings name
/// any.
pub fn check_origins(context: Arc<FrontendContext>) -> Arc<FrontendContext> {
    let Some(origins) = context.settings.cors_origins.clone() else { return context };
    let cors = Some(Arc::new(CorsGate { origins, context: Arc::clone(&context) }));
    Arc::new(FrontendContext { cors, ..(*context).clone() })
}

/// Answers a preflight request, or serves any other one and adds what the browser must know. A
/// refusal of the request, for example for its token, gets the headers too: else a page could not
/// read why.
pub fn serve_cross_origin(
    cors: Arc<CorsGate>,
    page: Option<Arc<MetricsPage>>,
    request: Request<RequestBody>,
    received_ns: u64,
) -> ResponseFuture {
    if is_preflight(&request) {
        let response = answer_preflight(&cors.origins, request.headers());
        return Box::pin(std::future::ready(response));
    }
    let granted = allow_origin(&cors.origins, request.headers().get(ORIGIN));
    Box::pin(async move {
        let routes = HttpRoutes::new(Arc::clone(&cors.context), page);
        let mut response = router::route_http(routes, request, received_ns).await;
        add_origin(&cors.origins, granted, response.headers_mut());
        response
    })
}

fn is_preflight<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    *request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The value of the header that allows an origin; `None` if it is not allowed, and without one.
fn allow_origin(origins: &CorsOrigins, origin: Option<&HeaderValue>) -> Option<HeaderValue> {
    match origins {
        CorsOrigins::Any => Some(EVERY),
        CorsOrigins::Listed(_) => origin.filter(|o| origins.allow(o.as_bytes())).cloned(),
    }
}

fn add_origin(origins: &CorsOrigins, granted: Option<HeaderValue>, headers: &mut HeaderMap) {
    if *origins != CorsOrigins::Any {
        // A cache must not give the response to a page of another origin.
        headers.append(VARY, VARY_ORIGIN);
    }
    if let Some(origin) = granted {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        // Lengths of JSON headers, status of v1, load reports, when to try again.
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EVERY);
    }
}

/// Every header may be sent, since the endpoints decide what they read: tokens, ids and restricted
/// endpoints have names of their own. A wildcard would not cover `Authorization`.
fn answer_preflight(origins: &CorsOrigins, request: &HeaderMap) -> Response<ResponseBody> {
    let origin = request.get(ORIGIN);
    let Some(granted) = allow_origin(origins, origin) else {
        let origin = origin.map(shown).unwrap_or_default();
        let error = format!(
            "pages of origin '{origin}' may not call this server: --http-cors-origin does not name it"
        );
        let text = serde_json::json!({ "error": error }).to_string();
        let mut refused = plain(StatusCode::FORBIDDEN, "application/json", text);
        refused.headers_mut().append(VARY, VARY_ORIGIN);
        return refused;
    };
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    add_origin(origins, Some(granted), headers);
    headers.remove(ACCESS_CONTROL_EXPOSE_HEADERS);
    headers.append(VARY, VARY_PREFLIGHT);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    if let Some(asked) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}
