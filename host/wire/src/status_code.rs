//! HTTP and gRPC status of a v2 error (docs/protocol/v2.md §1.3).

use http::StatusCode;
use tonic::metadata::MetadataMap;
use trtserver_base::error::{Code, Error};

/// HTTP status of a v2 error.
pub fn to_http_status(code: Code) -> StatusCode {
    row(code).1
}

/// gRPC status of a v2 error.
pub fn to_grpc_code(code: Code) -> tonic::Code {
    row(code).0
}

/// In the trailers of a call that may be made again: after how many milliseconds.
pub const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";

/// A v2 error as tonic carries it.
pub fn to_grpc_status(error: Error) -> tonic::Status {
    let code = to_grpc_code(error.code);
    let Some(ms) = error.retry_after_ms else { return tonic::Status::new(code, error.message) };
    let mut metadata = MetadataMap::new();
    metadata.insert(RETRY_PUSHBACK, ms.get().into());
    tonic::Status::with_metadata(code, error.message, metadata)
}

fn row(code: Code) -> (tonic::Code, StatusCode) {
    match code {
        Code::Unknown => (tonic::Code::Unknown, StatusCode::BAD_REQUEST),
        Code::Internal => (tonic::Code::Internal, StatusCode::INTERNAL_SERVER_ERROR),
        Code::NotFound => (tonic::Code::NotFound, StatusCode::NOT_FOUND),
        Code::InvalidArg => (tonic::Code::InvalidArgument, StatusCode::BAD_REQUEST),
        Code::Unavailable => (tonic::Code::Unavailable, StatusCode::SERVICE_UNAVAILABLE),
        Code::Unsupported => (tonic::Code::Unimplemented, StatusCode::NOT_IMPLEMENTED),
        Code::AlreadyExists => (tonic::Code::AlreadyExists, StatusCode::BAD_REQUEST),
        Code::Cancelled => (tonic::Code::Cancelled, StatusCode::BAD_REQUEST),
        Code::RequestTimeout => (tonic::Code::DeadlineExceeded, StatusCode::REQUEST_TIMEOUT),
        Code::Unauthenticated => (tonic::Code::Unauthenticated, StatusCode::UNAUTHORIZED),
        Code::PermissionDenied => (tonic::Code::PermissionDenied, StatusCode::FORBIDDEN),
        Code::ResourceExhausted => (tonic::Code::ResourceExhausted, StatusCode::TOO_MANY_REQUESTS),
    }
}

#[cfg(test)]
#[path = "status_code_tests.rs"]
mod tests;
