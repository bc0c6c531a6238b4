//! Batches with null requests: an error of a null request is everybody's (contract/v1 §8.3).
//!
//! The answers of such a batch are kept back until the last one is there. Counters move when the model
//! answers, so a caller who gets a null request's error may have been counted as a success before.

use crate::error::{Error, Result};
use crate::request::{InferRequest, InferResponse, ResponseSink, Sink};
use crate::sync::Mutex;
use std::sync::Arc;

/// Of a request whose answer is kept back.
type Answer = (Sink, Result<Option<InferResponse>>);

struct Kept {
    /// Requests of the batch whose answer is not there.
    open: usize,
    answers: Vec<Answer>,
    /// Of a null request.
    error: Option<Error>,
}

/// Ties the fates of `requests` together; `null` says which of them nobody asked for.
pub fn share(requests: &[InferRequest], null: impl Fn(&InferRequest) -> bool) {
    let kept = Kept { open: 0, answers: Vec::new(), error: None };
    let kept = Arc::new(Mutex::new(kept));
    for request in requests {
        let null = null(request);
        // One that has ended already has no sink, and must not be waited for.
        request.responder.wrap_sink(|sink| {
            kept.lock().open += 1;
            Tied { sink: Some(sink), null, kept: Arc::clone(&kept) }.into()
        });
    }
}

struct Tied {
    /// Until its last answer.
    sink: Option<Sink>,
    null: bool,
    kept: Arc<Mutex<Kept>>,
}

impl ResponseSink for Tied {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        if !last && response.is_ok() {
            if let Some(sink) = &mut self.sink {
                sink.send(response, false);
            }
            return;
        }
        let Some(sink) = self.sink.take() else { return };
        let mut kept = self.kept.lock();
        kept.open -= 1;
        if self.null {
            kept.error = kept.error.take().or(response.err());
        } else {
            kept.answers.push((sink, response));
        }
        if kept.open > 0 {
            return;
        }
        let (answers, error) = (std::mem::take(&mut kept.answers), kept.error.take());
        drop(kept);
        for (mut sink, response) in answers {
            sink.send(error.clone().map_or(response, Err), true);
        }
    }
}

#[cfg(test)]
#[path = "null_errors_tests.rs"]
mod tests;
