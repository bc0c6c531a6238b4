//! A v1 response over HTTP (docs/protocol/v1.md §3.2): 200 or 400, with its status in headers.

use crate::{header_text, request_status};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::sync::Arc;
use trtserver_base::error::{Code, Error};
use trtserver_config::ServerSettings;
use trtserver_proto::v1::RequestStatus;
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
    status: RequestStatus,
    /// The value of NV-InferResponse.
    pub infer_response: Option<String>,
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
            status: request_status::success_status(settings, request_id),
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
            status: request_status::shorten_status(request_status::failure_status(
                settings, error, request_id,
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
        // The text printer writes ASCII, which is always a valid header value.
        if let Ok(value) = HeaderValue::try_from(header_text::format_status(&self.status)) {
            headers.insert(NV_STATUS, value);
        }
        if let Some(Ok(value)) = self.infer_response.map(HeaderValue::try_from) {
            headers.insert(NV_INFER_RESPONSE, value);
        }
        if let Some(trace) = self.trace {
            response.body_mut().trace(trace.sending(self.code.as_u16()));
        }
        response
    }
}

/// A response without v1 status, for requests that reach no endpoint.
pub fn empty_response(code: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = code;
    response
}
