//! An isolated instance: moves inputs into shared memory and sends batches to the child process.

use super::facts;
use super::messages::ExecuteBatch;
use super::model::ProcessModel;
use super::requests::{encode_request, move_to_arena, unshare_inputs};
use super::supervisor::InstanceSession;
use super::work_connection::{SendOutcome, WorkConnection};
use std::sync::{Arc, Weak};
use trtserver_base::error::{Error, Result};
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_plugin_host::InstanceFacts;
use trtserver_plugin_host::batch::alignment::check_strings;
use trtserver_plugin_host::child_processes::IsolatedInstance;
use trtserver_plugin_host::request_metadata::check_metadata_size;
use trtserver_request::{InferRequest, implicit_state};

/// An instance whose batches are executed in a child process; tensors pass through shared memory.
pub struct ProcessInstance {
    /// The session keeps it: that of an ended child must not stay until the next batch.
    connection: Weak<WorkConnection>,
    /// The child that last got a batch, see `LiveProcess::generation`.
    generation: u64,
    session: Arc<InstanceSession>,
    batch: ExecuteBatch,
    model: Arc<ProcessModel>,
    /// Ordinal of the instance's GPU.
    gpu: Option<i32>,
    /// Batches by number that wait for a child.
    delayed: Vec<(u64, Vec<InferRequest>)>,
}

impl ProcessInstance {
    pub fn open(model: &Arc<ProcessModel>, facts: &InstanceFacts<'_>) -> Result<Self> {
        *model.shared.drain.lock() = facts.drain;
        let session = InstanceSession::new(facts::instance_facts(facts));
        let (connection, generation) = model.shared.add(&session)?;
        let (model, batch) = (Arc::clone(model), ExecuteBatch::default());
        let (connection, gpu) = (Arc::downgrade(&connection), session.gpu());
        Ok(Self { connection, generation, session, batch, model, gpu, delayed: Vec::new() })
    }
}

impl IsolatedInstance for ProcessInstance {
    fn close_alone(&mut self) {
        if self.session.connection().is_none_or(|connection| connection.outstanding.is_empty()) {
            self.connection = Weak::new();
            self.model.shared.remove(&self.session);
        }
    }

    fn on_sequences_lost(&self, lost: Box<dyn Fn() + Send + Sync>) {
        if self.model.shared.keeps_sequences {
            let _ = self.session.on_sequences_lost.set(lost);
        }
    }

    fn execute(&mut self, id: u64, requests: &mut Vec<InferRequest>, may_wait: bool) {
        self.prepare(requests);
        if requests.is_empty() {
            return;
        }
        if requests.iter().any(|request| request.responder.trace().is_some()) {
            self.note_traces(requests);
        }
        if may_wait {
            self.send_delayed();
            return self.send(id, requests, true);
        }
        let connected = self.connection.upgrade().is_some_and(|c| !c.outstanding.is_closed());
        if !connected || !self.delayed.is_empty() {
            self.delayed.push((id, std::mem::take(requests)));
            return;
        }
        self.send(id, requests, false);
    }

    fn has_delayed(&self) -> bool {
        !self.delayed.is_empty()
    }

    fn send_delayed(&mut self) {
        for (id, mut requests) in std::mem::take(&mut self.delayed) {
            self.send(id, &mut requests, true);
        }
    }

    fn poll(&self, to_the_end: bool) {
        if let Some(connection) = self.connection.upgrade() {
            connection.poll(to_the_end);
        }
    }

    fn batch_sizes(&self) -> &[BatchSize] {
        self.session.batch_sizes.get().map_or(&[], Vec::as_slice)
    }

    fn execution_ns(&self) -> u64 {
        self.connection.upgrade().map_or(0, |connection| connection.execution_ns())
    }
}

impl ProcessInstance {
    fn send(&mut self, id: u64, requests: &mut Vec<InferRequest>, may_wait: bool) {
        self.batch.id = id;
        loop {
            let (shared, batch, gpu) = (&self.model.shared, &mut self.batch, self.gpu);
            let encode = |key, request: &_| {
                encode_request(key, request, &shared.inputs, &shared.states, gpu)
            };
            if let Some(connection) = self.connection.upgrade() {
                let unshare = |batch: &_| unshare_inputs(batch, &shared.inputs);
                match connection.send(batch, requests, gpu, may_wait, encode, unshare) {
                    Ok(SendOutcome::Delivered) => return,
                    Ok(SendOutcome::ChildGone | SendOutcome::WouldWait) => {}
                    Err(e) => {
                        let e = Error::new(e.code, format!("{}: {e}", shared.subject));
                        return self.fail(requests, &e);
                    }
                }
            }
            if !may_wait {
                self.delayed.push((id, std::mem::take(requests)));
                return;
            }
            match self.model.shared.live(self.generation) {
                Ok(live) => {
                    self.generation = live.generation;
                    self.connection =
                        self.session.connection().map_or_else(Weak::new, |c| Arc::downgrade(&c));
                    self.fail_lost_sequences(requests);
                }
                Err(e) => {
                    self.fail(requests, &e);
                    return;
                }
            }
        }
    }

    /// Nested requests of the process may belong to these.
    #[cold]
    fn note_traces(&self, requests: &[InferRequest]) {
        if let Some(process) = self.model.shared.process() {
            let traces = requests.iter().filter_map(|request| request.responder.trace());
            traces.for_each(|trace| process.traces.add(trace));
        }
    }

    /// Moves the inputs into the arena, and fails requests that cannot be sent.
    fn prepare(&self, requests: &mut Vec<InferRequest>) {
        let (arena, align) = (&self.model.shared.inputs, self.model.align);
        let mut exhausted = None;
        // Other requests were checked before they were queued, steps of an ensemble were not.
        requests.retain_mut(|request| {
            let Err(e) = check_metadata_size(request) else { return true };
            let _ = request.responder.finish(Err(e));
            request.id.clear();
            request.parameters.clear();
            // A batch that must be kept is executed all the same.
            self.keeps_batch(request)
        });
        requests.retain_mut(|request| match move_to_arena(request, arena, align, self.gpu) {
            Ok(strings_from_gpu) => {
                if strings_from_gpu {
                    check_strings(request);
                }
                true
            }
            // A batch that must be kept fails as a whole when the inputs of a request are missing.
            Err(e) if self.keeps_batch(request) => {
                exhausted = Some(e);
                true
            }
            Err(e) => {
                let _ = request.responder.finish(Err(e));
                false
            }
        });
        if let Some(e) = exhausted {
            self.fail(requests, &e);
        }
    }

    /// No request may be removed from a batch: batch slots belong to sequences, or batch inputs
    /// describe the requests.
    fn keeps_batch(&self, request: &InferRequest) -> bool {
        self.model.shared.keeps_sequences || request.context().signature.keeps_batches()
    }

    /// Fails the requests. Their sequences are lost, since a step of each was not executed.
    fn fail(&self, requests: &mut Vec<InferRequest>, e: &Error) {
        self.session.notify_lost();
        for request in requests.drain(..) {
            let _ = request.responder.finish(Err(e.clone()));
        }
    }

    /// Fails requests whose sequence state was in the lost child. They are executed all the same,
    /// without a response, so that the other requests keep their batch slots.
    fn fail_lost_sequences(&self, requests: &[InferRequest]) {
        if !self.model.shared.keeps_sequences {
            return;
        }
        let lost = requests.iter().filter(|r| !r.sequence.start && r.context().is_counted());
        for request in lost {
            let signature = &request.context().signature;
            let _ = request.responder.finish(Err(implicit_state::lost_state_error(
                &signature.model,
                &request.sequence.id,
            )));
        }
    }
}
