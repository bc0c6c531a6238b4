//! Which request runs next. Knows requests and queues; no files, devices, plugins or protocols.

pub mod borrower; // threads that may execute a model themselves
mod conflicts; // how often a START too many is logged
mod dispatch; // controls, states and null requests of sequences
pub mod ensemble; // a request through several models
pub mod former; // batch forming, pure
mod order; // responses in the order of arrival
mod patience; // test hooks
mod queue; // the lock, the sleeping and the waking
mod together; // batches with null requests
mod words; // what is said to those who leave unexecuted

pub use dispatch::{Controls, Corrid, Flag};
pub use ensemble::Ensemble;
pub use queue::{Lendable, Policy, Queue, Work};

use crate::request::{InferRequest, Sequence};
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

    /// Sequences that have not ended.
    pub fn sequences(&self) -> usize {
        match self {
            Scheduler::Queue(queue) => queue.sequences(),
            // Its steps' models have them.
            Scheduler::Ensemble(_) => 0,
        }
    }

    /// Whether a request of `sequence` would go on with one of those.
    pub fn continues(&self, sequence: &Sequence) -> bool {
        match self {
            Scheduler::Queue(queue) => queue.continues(sequence),
            Scheduler::Ensemble(ensemble) => ensemble.continues(sequence),
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
