//! Unit tests of `infer.rs`.

use super::*;

#[test]
fn words() {
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
        assert_eq!(in_v1_words(Error::unavailable(today), id).message, v1);
    }
}
