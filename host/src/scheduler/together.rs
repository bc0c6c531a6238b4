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
pub fn tie(requests: &[InferRequest], null: impl Fn(&InferRequest) -> bool) {
    let kept = Kept { open: 0, answers: Vec::new(), error: None };
    let kept = Arc::new(Mutex::new(kept));
    for request in requests {
        let null = null(request);
        // One that has ended already has no sink, and must not be waited for.
        request.reply.wrap(|sink| {
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
mod tests {
    use super::*;
    use crate::request::testing::request;

    #[test]
    fn an_error_of_a_null_request_is_everybodys() {
        for (null_fails, want) in [(true, "null"), (false, "")] {
            let (a, _, told_a) = request("a");
            let (null, _, _) = request("null");
            let (b, _, told_b) = request("b");
            let batch = [a, null, b];
            tie(&batch, |r| r.id == "null");
            batch[0].reply.end(Ok(None)).unwrap();
            batch[2].reply.end(Ok(None)).unwrap();
            assert!(told_a.lock().is_empty());
            let end = if null_fails { Err(Error::internal("null")) } else { Ok(None) };
            batch[1].reply.end(end).unwrap();
            for told in [told_a, told_b] {
                let told = told.lock();
                let text = told[0].0.as_ref().err().map_or("", |e| &e.message);
                assert_eq!((told.len(), text), (1, want));
            }
        }
    }
}
