//! Unit tests of `refusal_errors.rs`: each protocol generation has its own texts.

use super::*;
use trtserver_request::RequestContext;
use trtserver_request::testing::{request_with, signature};

fn request(id: &str, wording: ErrorWording) -> InferRequest {
    let context = RequestContext {
        signature: signature(&[2], 0),
        stats: None,
        received_ns: 0,
        batch: 1,
        outputs: Default::default(),
        stream: None,
        waits: false,
        wording,
        used_memory: None,
    };
    request_with(context, id, []).0
}

#[test]
fn clients_of_v1_get_its_texts() {
    use ErrorWording::{V1, V2};
    for (id, wording, refusal, text) in [
        ("7", V1, QueueRefusal::TimedOut, "Request timeout expired"),
        ("7", V2, QueueRefusal::TimedOut, "[request id: 7] Request timeout expired"),
        ("", V1, QueueRefusal::QueueFull, "Exceeds maximum queue size"),
        ("", V2, QueueRefusal::QueueFull, "[request id: <id_unknown>] Exceeds maximum queue size"),
        (
            "",
            V1,
            QueueRefusal::NoCorrelationId,
            "inference request to model 'm' must specify a non-zero correlation ID",
        ),
        (
            "",
            V2,
            QueueRefusal::NoCorrelationId,
            "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
        ),
    ] {
        assert_eq!(refusal_error(refusal, &request(id, wording)).0.message, text);
    }
}
