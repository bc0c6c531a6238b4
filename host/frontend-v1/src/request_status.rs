//! RequestStatus: the result of a call in every v1 response.

use trtserver_base::error::{Code, Error};
use trtserver_config::ServerSettings;
use trtserver_proto::v1::{RequestStatus, RequestStatusCode};

/// Longest message in a header: far below the limits of HTTP libraries, even if every byte is
/// escaped.
const LONGEST: usize = 4096;

/// The status of a success. `request_id` 0 is not sent.
pub fn success_status(settings: &ServerSettings, request_id: u64) -> RequestStatus {
    status(settings, RequestStatusCode::Success, String::new(), request_id)
}

/// The status of a failure.
pub fn failure_status(settings: &ServerSettings, error: &Error, request_id: u64) -> RequestStatus {
    status(settings, to_v1_code(error.code), error.message.clone(), request_id)
}

/// The status for a result.
pub fn status_from_result<T>(
    settings: &ServerSettings,
    result: &Result<T, Error>,
    request_id: u64,
) -> RequestStatus {
    match result {
        Ok(_) => success_status(settings, request_id),
        Err(error) => failure_status(settings, error, request_id),
    }
}

/// The status with a message that is truncated if it is too long for a header.
pub fn shorten_status(mut status: RequestStatus) -> RequestStatus {
    if status.msg.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|i| status.msg.is_char_boundary(*i)).unwrap_or(0);
        status.msg.truncate(end);
        status.msg.push_str("...");
    }
    status
}

fn status(
    settings: &ServerSettings,
    code: RequestStatusCode,
    msg: String,
    request_id: u64,
) -> RequestStatus {
    // The text parsers of 18.04 refuse the field `server_id`.
    let server_id = if settings.emulate_18_04 { String::new() } else { settings.server_id.clone() };
    RequestStatus { code: code.into(), msg, server_id, request_id }
}

/// v1's code of an error. Clients before v1.1 do not know the name `ALREADY_EXISTS`, so inference
/// never sends it (`frontend-v1/src/infer.rs`).
fn to_v1_code(code: Code) -> RequestStatusCode {
    match code {
        Code::Unknown => RequestStatusCode::Unknown,
        Code::Internal => RequestStatusCode::Internal,
        Code::NotFound => RequestStatusCode::NotFound,
        Code::InvalidArg => RequestStatusCode::InvalidArg,
        Code::AlreadyExists => RequestStatusCode::AlreadyExists,
        Code::Unavailable | Code::Cancelled | Code::ResourceExhausted | Code::RequestTimeout => {
            RequestStatusCode::Unavailable
        }
        Code::Unsupported | Code::Unauthenticated | Code::PermissionDenied => {
            RequestStatusCode::Unsupported
        }
    }
}

#[cfg(test)]
#[path = "request_status_tests.rs"]
mod tests;
