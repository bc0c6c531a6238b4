//! Batches with null requests: an error of a null request fails the whole batch
//! (docs/protocol/v1.md §8.3).
//!
//! The final responses of such a batch are held until the last one has arrived. Counters move when
//! the backend responds, so a request that gets a null request's error may have been counted as a
//! success.

use parking_lot::Mutex;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_request::{InferRequest, InferResponse, ResponseSink, Sink};

/// The final response of a request, and where it goes.
type HeldResponse = (Sink, Result<Option<InferResponse>>);

struct SharedBatch {
    /// Requests without final response.
    pending: usize,
    held: Vec<HeldResponse>,
    /// The first error of a null request.
    error: Option<Error>,
}

/// Makes `requests` fail with the first error of a null request. `null` marks the null requests.
pub fn share_null_errors(requests: &[InferRequest], null: impl Fn(&InferRequest) -> bool) {
    let batch = SharedBatch { pending: 0, held: Vec::new(), error: None };
    let batch = Arc::new(Mutex::new(batch));
    for request in requests {
        let null = null(request);
        // A request that has its final response has no sink, and is not waited for.
        request.responder.wrap_sink(|sink| {
            batch.lock().pending += 1;
            HoldingSink { sink: Some(sink), null, batch: Arc::clone(&batch) }.into()
        });
    }
}

struct HoldingSink {
    /// The request's sink; `None` after the final response.
    sink: Option<Sink>,
    null: bool,
    batch: Arc<Mutex<SharedBatch>>,
}

impl ResponseSink for HoldingSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        if !last && response.is_ok() {
            if let Some(sink) = &mut self.sink {
                sink.send(response, false);
            }
            return;
        }
        let Some(sink) = self.sink.take() else { return };
        let mut batch = self.batch.lock();
        batch.pending -= 1;
        if self.null {
            batch.error = batch.error.take().or(response.err());
        } else {
            batch.held.push((sink, response));
        }
        if batch.pending > 0 {
            return;
        }
        let (held, error) = (std::mem::take(&mut batch.held), batch.error.take());
        drop(batch);
        for (mut sink, response) in held {
            sink.send(error.clone().map_or(response, Err), true);
        }
    }
}

#[cfg(test)]
#[path = "null_errors_tests.rs"]
mod tests;
