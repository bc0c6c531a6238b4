//! Schedulers: queues, batchers, inline execution and ensembles. They know requests, but no files, devices, plugins and
//! protocols.

mod assembler; // batch entries to requests: controls, states, null requests
pub mod batch_inputs; // tensors that describe the requests of a batch
pub mod batcher; // batching decisions, pure
mod conflict_log; // rate limit of the START conflict warning
mod delay_hook; // test hook: wait for a number of queued requests
pub mod ensemble; // a request through several models
pub mod inline; // network threads that run idle instances
mod null_errors; // an error of a null request fails its whole batch
mod queue; // waiting requests of one version, and the states of its instances
mod refusal_errors; // errors of refused requests
mod response_order; // `preserve_ordering`

pub use assembler::{Controls, Corrid, Flag};
pub use ensemble::Ensemble;
pub use queue::{Batch, Queue, SchedulingPolicy};

use crate::request::{InferRequest, Sequence};
use std::sync::Arc;

/// What a model version does with its requests.
pub enum Scheduler {
    /// Queues them for the instances of the version.
    Queue(Arc<Queue>),
    /// Executes them step by step in other models.
    Ensemble(Ensemble),
}

impl Scheduler {
    /// Queues a checked request. It gets its final response whatever happens.
    pub fn submit(&self, request: InferRequest) {
        match self {
            Scheduler::Queue(queue) => queue.submit(request),
            Scheduler::Ensemble(ensemble) => ensemble.submit(request),
        }
    }

    /// Whether it keeps sequences.
    pub fn is_sequence(&self) -> bool {
        match self {
            Scheduler::Queue(queue) => queue.is_sequence(),
            Scheduler::Ensemble(_) => false,
        }
    }

    /// Sequences that have not ended.
    pub fn active_sequences(&self) -> usize {
        match self {
            Scheduler::Queue(queue) => queue.active_sequences(),
            // Its sequences are those of the models of its steps.
            Scheduler::Ensemble(_) => 0,
        }
    }

    /// Whether `sequence` has begun and not ended.
    pub fn has_sequence(&self, sequence: &Sequence) -> bool {
        match self {
            Scheduler::Queue(queue) => queue.has_sequence(sequence),
            Scheduler::Ensemble(ensemble) => ensemble.has_sequence(sequence),
        }
    }

    /// Requests accepted and not yet executing.
    pub fn waiting(&self) -> usize {
        match self {
            Scheduler::Queue(queue) => queue.waiting(),
            // Its requests are in the queues of the models of its steps.
            Scheduler::Ensemble(_) => 0,
        }
    }

    /// Number of instances that execute its requests; `None` for an ensemble, whose steps have instances.
    pub fn instances(&self) -> Option<usize> {
        match self {
            Scheduler::Queue(queue) => Some(queue.instances()),
            Scheduler::Ensemble(_) => None,
        }
    }

    /// Calls `visit`, which must be quick, with each request that is accepted and not yet executing.
    pub fn visit_waiting(&self, visit: &mut dyn FnMut(&InferRequest)) {
        match self {
            Scheduler::Queue(queue) => queue.visit_waiting(visit),
            // As above.
            Scheduler::Ensemble(_) => {}
        }
    }
}
