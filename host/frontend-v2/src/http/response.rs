//! Responses without tensors: JSON, plain text, errors.

use super::management_json;
use http::{HeaderValue, Response, StatusCode, header};
use trtserver_base::error::Error;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::status_code;

pub fn json_response(text: Vec<u8>) -> Response<ResponseBody> {
    typed(text, "application/json")
}

/// The default content type of Triton's HTTP library.
pub fn text_response(text: Vec<u8>) -> Response<ResponseBody> {
    typed(text, "text/plain")
}

fn typed(text: Vec<u8>, kind: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An error as JSON.
pub fn error_response(error: &Error) -> Response<ResponseBody> {
    refusal(error, json_response(management_json::error_json(&error.message)))
}

/// An error of inference before the JSON is read, or after the model was executed: its content type
/// is plain text.
pub fn plain_failure(error: &Error) -> Response<ResponseBody> {
    refusal(error, text_response(management_json::error_json(&error.message)))
}

fn refusal(error: &Error, response: Response<ResponseBody>) -> Response<ResponseBody> {
    let mut response = with_status(status_code::to_http_status(error.code), response);
    if let Some(seconds) = error.retry_after_secs() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

pub fn with_status(
    status: StatusCode,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    *response.status_mut() = status;
    response
}
