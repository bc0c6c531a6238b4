//! A v1 response over HTTP (docs/protocol/v1.md §3.2): 200 or 400, with its status in headers.

use crate::header_text::HeaderLine;
use crate::{header_text, request_status};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::sync::Arc;
use trtserver_base::error::{Code, Error};
use trtserver_config::ServerSettings;
use trtserver_request_trace::ActiveTrace;
use trtserver_wire::chunks::Chunks;
use trtserver_wire::http::body::ResponseBody;

pub const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The default content type of the HTTP library of TRTIS.
pub const TEXT: HeaderValue = HeaderValue::from_static("text/html; charset=ISO-8859-1");

const NV_STATUS: HeaderName = HeaderName::from_static("nv-status");
const NV_INFER_RESPONSE: HeaderName = HeaderName::from_static("nv-inferresponse");

/// A v1 response before it is encoded: HTTP status, v1 request status, and body.
pub struct V1Response {
    pub code: StatusCode,
    /// The client may try later: in so many seconds.
    retry_after: Option<u32>,
    content_type: HeaderValue,
    /// The value of NV-Status.
    status: HeaderLine,
    /// The value of NV-InferResponse.
    pub infer_response: Option<HeaderLine>,
    pub body: Chunks,
    /// The request's headers, whose memory is reused for the response and the next request on the
    /// connection.
    pub reused_headers: HeaderMap,
    pub trace: Option<Arc<ActiveTrace>>,
}

impl V1Response {
    /// A success without a body.
    pub fn success(settings: &ServerSettings, request_id: u64, content_type: HeaderValue) -> Self {
        Self {
            code: StatusCode::OK,
            retry_after: None,
            content_type,
            status: success_line(settings, request_id),
            infer_response: None,
            body: Chunks::default(),
            reused_headers: HeaderMap::new(),
            trace: None,
        }
    }

    /// A failure; its body is empty.
    pub fn failure(
        settings: &ServerSettings,
        error: &Error,
        request_id: u64,
        content_type: HeaderValue,
    ) -> Self {
        let code = match error.code {
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            _ => StatusCode::BAD_REQUEST,
        };
        Self {
            code,
            retry_after: error.retry_after_secs(),
            status: header_text::format_status(&request_status::shorten_status(
                request_status::failure_status(settings, error, request_id),
            )),
            ..Self::success(settings, 0, content_type)
        }
    }

    pub fn with_body(mut self, body: Vec<u8>) -> Self {
        self.body = Chunks::from(body);
        self
    }

    pub fn into_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::from_chunks(self.body));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        *headers = self.reused_headers;
        headers.clear();
        headers.insert(CONTENT_TYPE, self.content_type);
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(value) = self.status.into_value() {
            headers.insert(NV_STATUS, value);
        }
        if let Some(value) = self.infer_response.and_then(HeaderLine::into_value) {
            headers.insert(NV_INFER_RESPONSE, value);
        }
        if let Some(trace) = self.trace {
            response.body_mut().trace(trace.sending(self.code.as_u16()));
        }
        response
    }
}

fn success_line(settings: &ServerSettings, request_id: u64) -> HeaderLine {
    // Not copied into a message, which the text parsers of 18.04 want without it.
    if settings.emulate_18_04 || !header_text::plain(&settings.server_id) {
        return header_text::format_status(&request_status::success_status(settings, request_id));
    }
    header_text::success_line(&settings.server_id, request_id)
}

/// A response without v1 status, for requests that reach no endpoint.
pub fn empty_response(code: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = code;
    response
}
