//! Which request runs next. Knows requests and queues; no files, devices, plugins or protocols.

pub mod default; // one FIFO, one request at a time per instance
pub mod ensemble; // a request through several models
pub mod former; // batch forming, pure

pub use default::Queue;
pub use ensemble::Ensemble;

use crate::request::InferRequest;
use std::sync::Arc;

/// The way in for front ends: what a version does with its requests.
pub enum Scheduler {
    /// They wait for the instances that share this queue.
    Queue(Arc<Queue>),
    /// They go through other models.
    Ensemble(Ensemble),
}

impl Scheduler {
    /// Queues a checked request. The reply is answered whatever happens.
    pub fn submit(&self, request: InferRequest) {
        match self {
            Scheduler::Queue(queue) => queue.submit(request),
            Scheduler::Ensemble(ensemble) => ensemble.submit(request),
        }
    }

    /// Requests accepted and not yet executing.
    pub fn waiting(&self) -> usize {
        match self {
            Scheduler::Queue(queue) => queue.waiting(),
            // They wait in the queues of the steps' models.
            Scheduler::Ensemble(_) => 0,
        }
    }

    /// Stops accepting; what waits is still executed.
    pub fn close(&self) {
        match self {
            Scheduler::Queue(queue) => queue.close(),
            // Whoever could submit holds what is closed here.
            Scheduler::Ensemble(_) => {}
        }
    }
}
