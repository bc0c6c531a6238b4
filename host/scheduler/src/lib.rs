//! Schedulers: queues, batchers, inline execution and ensembles. They know requests, but no files,
//! devices, plugins and protocols.
//!
//! A queue (`queue`) holds the waiting requests of one model version under one lock and puts
//! instance threads to sleep. Which requests form a batch is decided by a batcher ([`batcher`]):
//! dynamic, sequence direct or sequence oldest. Batchers are pure: requests and the time go in, a
//! batch or the next time to look comes out, so that their tests are tables on a fake clock.
//! A delay hook, environment variables of public test suites, holds a model back until enough
//! requests wait. [`inline`] lets a network thread run an idle instance. [`limiter`] is asked for a
//! grant where executions need resources. [`ensemble`] submits steps to the queues
//! of other models.

#![forbid(unsafe_code)]

mod assembler;
pub mod batch_inputs;
pub mod batcher;
mod conflict_log;
mod delay_hook;
pub mod ensemble;
pub mod inline;
mod late_refusal;
pub mod limiter;
mod null_errors;
mod queue;
mod refusal_errors;
mod response_order;

pub use assembler::{CorrelationControl, FlagControl, SequenceControls};
pub use ensemble::Ensemble;
pub use late_refusal::{LateArrival, WaitLimit};
pub use queue::{RequestBatch, RequestQueue, SchedulingPolicy};

use std::sync::Arc;
use trtserver_request::{InferRequest, RequestSequence, Responder};

/// What a model version does with its requests.
#[derive(Clone)]
pub enum Scheduler {
    /// Queues them for the instances of the version.
    Queue(Arc<RequestQueue>),
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

    /// Responses leave in the order in which requests were submitted.
    pub fn is_ordered(&self) -> bool {
        match self {
            Scheduler::Queue(queue) => queue.is_ordered(),
            Scheduler::Ensemble(_) => false,
        }
    }

    /// Gives a request that is answered without being submitted its place in the order of responses,
    /// if there is one.
    pub fn order_response(&self, responder: &Responder) {
        if let Scheduler::Queue(queue) = self {
            queue.order_response(responder);
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
    pub fn has_sequence(&self, sequence: &RequestSequence) -> bool {
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

    /// Number of instances that execute its requests; `None` for an ensemble, whose steps have
    /// instances.
    pub fn instances(&self) -> Option<usize> {
        match self {
            Scheduler::Queue(queue) => Some(queue.instances()),
            Scheduler::Ensemble(_) => None,
        }
    }

    /// Calls `visit`, which must be quick, with each request that is accepted and not yet
    /// executing.
    pub fn visit_waiting(&self, visit: &mut dyn FnMut(&InferRequest)) {
        match self {
            Scheduler::Queue(queue) => queue.visit_waiting(visit),
            // Its requests are in the queues of the models of its steps.
            Scheduler::Ensemble(_) => {}
        }
    }
}
