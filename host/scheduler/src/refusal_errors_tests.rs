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

#[test]
fn late_requests_are_told_wait_limit_and_when_to_try_again() {
    let ms = std::time::Duration::from_millis;
    for (kind, wait, limit, says, retry) in [
        (WaitLimit::Target, 1500, 100, "beyond the target of 100 ms (--queue-wait-target-ms);", 2),
        (WaitLimit::Timeout, 60, 50, "beyond its timeout of 50 ms;", 1),
        (WaitLimit::Deadline, 50, 50, "beyond its deadline in 50 ms, which includes", 1),
    ] {
        let late = LateArrival { wait: ms(wait), limit: ms(limit), kind };
        let request = request("7", ErrorWording::V2);
        let error = late_error(&late, &request);
        let begin = format!("[request id: 7] model 'm' is busy: the request would wait {wait} ms");
        let text = &error.message;
        assert!(text.starts_with(&begin) && text.contains(says), "{text}");
        assert_eq!(error.code, Code::ResourceExhausted);
        let retry_ms = error.retry_after_ms.map(|ms| u64::from(ms.get()));
        assert_eq!((retry_ms, error.retry_after_secs()), (Some(wait), Some(retry)));
    }
}
