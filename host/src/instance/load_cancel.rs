//! Breaks off the load of a model: by shutdown, or by an unload request. Warm-up ends between two executions, and backends
//! that poll the cancel flag end earlier.

use crate::request::{InferRequest, Responder};
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// One per load. Cancelled once, for good.
#[derive(Default)]
pub struct LoadCancel {
    cancelled: AtomicBool,
    /// Warm-up requests that are executed.
    executing: Mutex<Vec<Weak<Responder>>>,
}

impl LoadCancel {
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        let executing = std::mem::take(&mut *self.executing.lock());
        for responder in executing.iter().filter_map(Weak::upgrade) {
            responder.cancel_token.cancel();
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// `requests` are executed next: cancelling the load cancels them.
    pub fn executes(&self, requests: &[InferRequest]) {
        let mut executing = self.executing.lock();
        executing.retain(|responder| responder.strong_count() > 0);
        executing.extend(requests.iter().map(|request| Arc::downgrade(&request.responder)));
        drop(executing);
        if self.is_cancelled() {
            self.cancel();
        }
    }
}

#[cfg(test)]
#[path = "load_cancel_tests.rs"]
mod tests;
