//! An inference whose end somebody wants to know.

use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;
use trtserver_base::request_id;
use trtserver_base::request_observer::{ExecutionTimes, InferenceEnd, RequestObserver};

/// An inference whose end somebody wants to know.
#[derive(Debug)]
pub struct ObservedInference {
    observer: Arc<dyn RequestObserver>,
    id: String,
    model: Arc<str>,
    version: i64,
}

impl ObservedInference {
    /// For the request for which this thread is working; `None` if nobody observes it.
    #[inline]
    pub fn current(
        id: impl FnOnce() -> String,
        model: &Arc<str>,
        version: i64,
    ) -> Option<Box<Self>> {
        let observer = request_id::current_observer()?;
        Some(Box::new(Self { observer, id: id(), model: Arc::clone(model), version }))
    }

    /// The inference has ended.
    pub fn ended(
        &self,
        batch: u32,
        received_ns: u64,
        execution: Option<ExecutionTimes>,
        error: Option<&Error>,
    ) {
        self.observer.inference_ended(&InferenceEnd {
            id: &self.id,
            model: &self.model,
            version: self.version,
            batch,
            execution,
            total_ns: now_ns().saturating_sub(received_ns),
            error,
        });
    }
}
