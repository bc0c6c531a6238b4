//! Unit tests of `infer.rs`.

use super::*;

#[test]
fn scheduler_errors_get_v1_texts() {
    for (id, today, v1) in [
        (
            0,
            "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
            "inference request to model 'm' must specify a non-zero correlation ID",
        ),
        (7, "[request id: 7] Request timeout expired", "Request timeout expired"),
        (0, "[request id: <id_unknown>] Exceeds maximum queue size", "Exceeds maximum queue size"),
        (7, "other", "other"),
    ] {
        assert_eq!(v1_error(Error::unavailable(today), id).message, v1);
    }
}

#[test]
fn code_that_old_clients_do_not_know_is_not_sent() {
    let error = v1_error(Error::new(Code::AlreadyExists, "x"), 0);
    assert_eq!(error, Error::invalid("x"));
}
