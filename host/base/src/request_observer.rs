//! The observer of a request, which is told how its inferences end: the access log.

use crate::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

/// Is told how the inferences of a request end. Called on any thread, before the response is sent;
/// it must not wait.
pub trait RequestObserver: Debug + Send + Sync {
    fn inference_ended(&self, end: &InferenceEnd<'_>);

    /// The client was authenticated under this name.
    fn caller_named(&self, name: &Arc<str>);

    /// The access check refuses the request, or one within its stream, with this error.
    fn request_refused(&self, error: &str);
}

/// An inference that has ended.
#[derive(Clone, Copy, Debug)]
pub struct InferenceEnd<'a> {
    /// The client's id of it; empty for none.
    pub id: &'a str,
    pub model: &'a str,
    pub version: i64,
    /// Rows of its tensors; 0 = not known.
    pub batch: u32,
    /// `None` unless it was executed.
    pub execution: Option<ExecutionTimes>,
    /// Since its arrival.
    pub total_ns: u64,
    pub error: Option<&'a Error>,
}

/// The execution that an inference was part of.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionTimes {
    /// Rows of its whole batch.
    pub rows: u32,
    /// From the queue's taking the request to the start of the execution.
    pub queue_ns: u64,
    pub compute_ns: u64,
}
