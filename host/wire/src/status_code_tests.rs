//! Unit tests of `status_code.rs`.

use super::*;

#[test]
fn status_numbers() {
    for (code, want_grpc, want_http) in [
        (Code::Unknown, 2, 400),
        (Code::Internal, 13, 500),
        (Code::NotFound, 5, 404),
        (Code::InvalidArg, 3, 400),
        (Code::Unavailable, 14, 503),
        (Code::Unsupported, 12, 501),
        (Code::AlreadyExists, 6, 400),
        (Code::Cancelled, 1, 400),
        (Code::ResourceExhausted, 8, 429),
    ] {
        assert_eq!(
            (to_grpc_code(code) as i32, to_http_status(code).as_u16()),
            (want_grpc, want_http)
        );
    }
}

#[test]
fn calls_that_may_be_made_again_say_when() {
    let wait = std::time::Duration::from_micros(1500);
    for (error, expected) in
        [(Error::retry_later("busy", wait), Some("2")), (Error::unavailable("full"), None)]
    {
        let status = to_grpc_status(error);
        let found = status.metadata().get(RETRY_PUSHBACK).map(|value| value.to_str().unwrap());
        assert_eq!(found, expected, "{status:?}");
    }
}
