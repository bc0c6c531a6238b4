//! Errors of requests that leave the queue without being executed.

use super::batcher::QueueRefusal;
use super::late_refusal::{LateArrival, WaitLimit};
use trtserver_base::error::{Code, Error};
use trtserver_base::stats::FailureReason;
use trtserver_request::InferRequest;
use trtserver_request::context::ErrorWording;
use trtserver_request::implicit_state::lost_state_error;

/// The texts of docs/protocol/v2.md §4.7–4.9, or those of v1 for its clients.
pub fn refusal_error(refusal: QueueRefusal, request: &InferRequest) -> (Error, FailureReason) {
    let m = &request.context().signature.model;
    let id = request.error_prefix();
    match refusal {
        QueueRefusal::QueueFull => {
            (Error::unavailable(format!("{id}Exceeds maximum queue size")), FailureReason::Rejected)
        }
        QueueRefusal::TimedOut => {
            (Error::unavailable(format!("{id}Request timeout expired")), FailureReason::Rejected)
        }
        QueueRefusal::SequenceTimedOut => (
            Error::unavailable("timeout of the corresponding sequence has been expired"),
            FailureReason::Rejected,
        ),
        QueueRefusal::Cancelled => {
            (Error::new(Code::Cancelled, "request was cancelled"), FailureReason::Canceled)
        }
        QueueRefusal::SequenceCancelled => (
            Error::new(
                Code::Cancelled,
                format!(
                    "sequence {} of model '{m}' was cancelled with one of its requests",
                    request.sequence.id
                ),
            ),
            FailureReason::Canceled,
        ),
        QueueRefusal::SequenceLost => {
            (lost_state_error(m, &request.sequence.id), FailureReason::Other)
        }
        QueueRefusal::NotOneRow => (
            Error::invalid(format!(
                "inference request to model '{m}' must specify batch-size 1 due to requirements of \
                 sequence batcher"
            )),
            FailureReason::Refused,
        ),
        QueueRefusal::NoCorrelationId => (
            Error::invalid(format!(
                "inference request to model '{m}' must specify a {} correlation ID",
                match request.context().wording {
                    ErrorWording::V1 => "non-zero",
                    ErrorWording::V2 => "non-zero or non-empty",
                }
            )),
            FailureReason::Refused,
        ),
        QueueRefusal::NoStart => (
            Error::invalid(format!(
                "inference request for sequence {} to model '{m}' must specify the START flag on the \
                 first request of the sequence",
                request.sequence.id
            )),
            FailureReason::Refused,
        ),
    }
}

/// Names the model, the predicted wait and the limit, and when to try again.
pub fn late_error(late: &LateArrival, request: &InferRequest) -> Error {
    let LateArrival { wait, limit, kind } = late;
    let (id, m) = (request.error_prefix(), &request.context().signature.model);
    let limit_ms = limit.as_millis();
    let exceeded = match kind {
        WaitLimit::Target => format!("the target of {limit_ms} ms (--queue-wait-target-ms)"),
        WaitLimit::Timeout => format!("its timeout of {limit_ms} ms"),
        WaitLimit::Deadline => {
            format!("its deadline in {limit_ms} ms, which includes the execution")
        }
    };
    let wait_ms = wait.as_millis();
    let text = format!(
        "{id}model '{m}' is busy: the request would wait {wait_ms} ms in its queue, beyond {exceeded}; send it again later"
    );
    Error::retry_later(text, *wait)
}

#[cfg(test)]
#[path = "refusal_errors_tests.rs"]
mod tests;
