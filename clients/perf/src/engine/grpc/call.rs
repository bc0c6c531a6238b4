//! A call on a connection, or an open stream that carries one request after another.

use super::super::message::MessageReader;
use super::super::thread::{FinishedRequest, RequestJob};
use super::GrpcContext;

pub struct OpenCall {
    pub id: u32,
    /// `None` while an open stream waits for the next request.
    pub job: Option<RequestJob>,
    /// Bytes of the message that were made into frames.
    pub framed: usize,
    pub window: i64,
    pub received: u32,
    pub sent: u64,
    pub first: u64,
    pub end: u64,
    pub responses: u32,
    pub reader: MessageReader,
    pub failure: Option<String>,
    /// The message that completes the request has arrived.
    pub answered: bool,
}

impl OpenCall {
    pub fn new(id: u32, window: i64) -> Self {
        OpenCall {
            id,
            job: None,
            framed: 0,
            window,
            received: 0,
            sent: 0,
            first: 0,
            end: 0,
            responses: 0,
            reader: MessageReader::default(),
            failure: None,
            answered: false,
        }
    }
}

/// Reports the request of a call as done.
pub fn complete_call(
    call: &mut OpenCall,
    context: &GrpcContext<'_>,
    done: &mut Vec<FinishedRequest>,
) {
    let Some(job) = call.job.take() else { return };
    let now = context.clock.now();
    // A stream is timed by its first response, a call by its end.
    let timed = context.streaming && call.end > 0 && call.failure.is_none();
    let end = if timed { call.end } else { now };
    let sent = if call.sent == 0 { end } else { call.sent };
    let first = if call.first == 0 { end } else { call.first };
    let failure = call.failure.take();
    done.push(FinishedRequest { job, sent, first, end, responses: call.responses, failure });
}

/// A gRPC status by its name.
pub fn status_name(status: u32) -> String {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES
        .get(status as usize)
        .map_or_else(|| format!("gRPC status {status}"), |name| (*name).to_owned())
}
