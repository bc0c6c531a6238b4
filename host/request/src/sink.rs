//! Response sinks: where the responses of a request go. Frontends, ensembles and isolation
//! implement them.

use super::response::InferResponse;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::BatchExecution;

/// Takes the responses of one request. Must hand over and return: never block, never call back into
/// the request's [`super::Responder`]. Handing over may mean pushing a request into another queue,
/// as ensembles do.
pub trait ResponseSink: Send {
    /// `last`: this response is final. An error is always final. `Ok(None)` finishes a stream
    /// without data.
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool);

    /// The request is executed with a part of its batch, which begins with the request at position
    /// `first`.
    fn executed_in_part(&mut self, _first: u32, _part: &Arc<BatchExecution>) {}
}

/// A sink that the receiving end owns, too: one allocation for both.
pub trait SharedSink: Send + Sync {
    /// As [`ResponseSink::send`]. Calls do not overlap.
    fn send(&self, response: Result<Option<InferResponse>>, last: bool);

    /// No further call follows. A final response may be missing.
    fn closed(&self);
}

/// See [`ResponseSink`] and [`SharedSink`].
pub enum Sink {
    Own(Box<dyn ResponseSink>),
    Shared(CloseOnDrop),
}

/// Closes a shared sink when no one can send to it any more.
pub struct CloseOnDrop(Arc<dyn SharedSink>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.closed();
    }
}

impl Sink {
    pub fn shared(sink: Arc<dyn SharedSink>) -> Self {
        Self::Shared(CloseOnDrop(sink))
    }

    pub fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        match self {
            Self::Own(sink) => sink.send(response, last),
            Self::Shared(sink) => sink.0.send(response, last),
        }
    }

    /// See [`ResponseSink::executed_in_part`].
    pub fn executed_in_part(&mut self, first: u32, part: &Arc<BatchExecution>) {
        if let Self::Own(sink) = self {
            sink.executed_in_part(first, part);
        }
    }
}

impl<S: ResponseSink + 'static> From<S> for Sink {
    fn from(sink: S) -> Self {
        Self::Own(Box::new(sink))
    }
}

/// A sink that drops all responses.
pub struct DiscardResponses;

impl ResponseSink for DiscardResponses {
    fn send(&mut self, _: Result<Option<InferResponse>>, _: bool) {}
}

/// Collects the one response of a request whose client takes exactly one.
#[derive(Default)]
pub struct SingleResponse {
    first: Option<InferResponse>,
    count: usize,
}

impl SingleResponse {
    /// Takes what a sink received. Returns the outcome once it is complete.
    pub fn put(
        &mut self,
        response: Result<Option<InferResponse>>,
        last: bool,
    ) -> Option<Result<InferResponse>> {
        match response {
            Err(error) => return Some(Err(error)),
            Ok(None) => {}
            Ok(Some(response)) => {
                self.count += 1;
                self.first.get_or_insert(response);
            }
        }
        last.then(|| match (self.first.take(), self.count) {
            (Some(response), 1) => Ok(response),
            (_, n) => Err(Error::internal(format!("expected a single response, got {n}"))),
        })
    }
}
