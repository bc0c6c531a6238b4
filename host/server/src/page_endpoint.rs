//! The files of the status page: `/` for browsers, and `/ui/…`. They are the same for everybody and
//! hold no data; what they show is asked of other endpoints.

use crate::router::{not_found, plain};
use http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use trtserver_status_page::page;
use trtserver_wire::http::body::ResponseBody;

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, page::CONTENT_SECURITY_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    // After an upgrade of the server its own files are shown.
    (CACHE_CONTROL, "no-cache"),
    (VARY, "accept"),
];

/// A file of the page; 404 for other paths, and at `/` for clients that do not ask for HTML.
pub fn serve_page<B>(request: &Request<B>) -> Response<ResponseBody> {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let Some(file) = page::find_file(request.uri().path(), accept) else { return not_found() };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", String::new());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let text = bytes::Bytes::from_static(file.text.as_bytes());
    let mut response = Response::new(ResponseBody::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
