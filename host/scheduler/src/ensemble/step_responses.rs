//! Responses of decoupled steps in an ensemble. Each has a pool of tensors; a response of the last
//! decoupled step before the outputs becomes a response of the ensemble. Without locks:
//! [`super::run`] has the lock.

use super::graph::EnsembleGraph;
use super::tensors::{EnsembleTensor, StepInputs, TensorPool};
use std::collections::{BTreeMap, VecDeque};
use trtserver_request::{InferResponse, ModelSignature, RequestedOutput, UnreadResponse};

/// The open responses of decoupled steps of one ensemble request, each with a pool of tensors.
/// Responses are numbered from 1.
pub struct StepResponses {
    /// The decoupled step for each of whose responses there is one of the ensemble.
    source: usize,
    /// [`TensorPool::uses`] of the request's pool when it was new.
    uses: Vec<usize>,
    open: BTreeMap<u64, StepResponse>,
    last_number: u64,
    /// Numbers of the responses of `source`, until they are delivered.
    outgoing: VecDeque<u64>,
    /// A thread is sending a response.
    delivering: bool,
    /// Responses whose steps have ended, until [`StepResponses::take_spent`].
    spent: Vec<StepResponse>,
}

pub struct StepResponse {
    pool: TensorPool,
    /// It is in `outgoing`.
    is_outgoing: bool,
    /// Steps that take it and have not ended.
    executing: usize,
    /// Counts it as unread until the client has the ensemble's response.
    unread: Option<Box<UnreadResponse>>,
}

/// What is sent next.
pub enum NextResponse {
    /// Nothing yet.
    Wait,
    /// The outputs in requested order.
    Next(Vec<Option<EnsembleTensor>>, Option<Box<UnreadResponse>>),
    /// The outputs of the last response, in requested order.
    Last(Vec<Option<EnsembleTensor>>, Option<Box<UnreadResponse>>),
    /// All responses were sent.
    Ended,
    /// Tensors are missing, and no step can run.
    Stuck,
}

impl StepResponses {
    /// `None` if no decoupled step is executed for the requested outputs. `pool`: the request's,
    /// when it is new.
    pub fn for_request(
        graph: &EnsembleGraph,
        requested: &[RequestedOutput],
        pool: &TensorPool,
    ) -> Option<Self> {
        if !graph.is_decoupled() {
            return None;
        }
        let source = match requested {
            [] => graph.response_source(graph.outputs.iter().copied()),
            some => graph.response_source(some.iter().map(|w| graph.outputs[w.index()])),
        };
        Some(Self {
            source: source?,
            uses: pool.uses().to_vec(),
            open: BTreeMap::new(),
            last_number: 0,
            outgoing: VecDeque::new(),
            delivering: false,
            spent: Vec::new(),
        })
    }

    /// Adds a response of the decoupled step `step`.
    pub fn add(
        &mut self,
        graph: &EnsembleGraph,
        step: usize,
        signature: &ModelSignature,
        root: &TensorPool,
        mut response: InferResponse,
    ) {
        let mut pool = root.for_response(graph, step, &self.uses);
        pool.store(graph, step, signature, &response);
        self.last_number += 1;
        let is_outgoing = step == self.source;
        let unread = response.unread.take();
        self.open
            .insert(self.last_number, StepResponse { pool, is_outgoing, executing: 0, unread });
        if is_outgoing {
            self.outgoing.push_back(self.last_number);
        }
    }

    /// Sets what `step` wrote for response `number`.
    pub fn store(
        &mut self,
        graph: &EnsembleGraph,
        number: u64,
        step: usize,
        signature: &ModelSignature,
        response: &InferResponse,
    ) {
        if let Some(of) = self.open.get_mut(&number) {
            of.pool.store(graph, step, signature, response);
        }
        self.step_ended(number);
    }

    /// A step that took response `number` has ended. Without further steps, a response that is not
    /// the ensemble's is spent.
    pub fn step_ended(&mut self, number: u64) {
        let Some(of) = self.open.get_mut(&number) else { return };
        of.executing -= 1;
        if of.executing == 0 && !of.is_outgoing && of.pool.is_done() {
            self.spent.extend(self.open.remove(&number));
        }
    }

    /// Responses whose steps have ended, to be dropped without the lock.
    pub fn take_spent(&mut self) -> Vec<StepResponse> {
        std::mem::take(&mut self.spent)
    }

    /// Takes the steps that can run now.
    pub fn take_ready(
        &mut self,
        graph: &EnsembleGraph,
        root: &TensorPool,
        mut take: impl FnMut(u64, usize, StepInputs),
    ) {
        for (number, response) in &mut self.open {
            let StepResponse { pool, executing, .. } = response;
            pool.take_ready(graph, Some(root), |step, read| {
                *executing += 1;
                take(*number, step, read);
            });
        }
    }

    /// The response that is sent next, if no other thread is sending one: then
    /// [`StepResponses::delivered`] must follow. `idle`: no step is executing.
    pub fn next(
        &mut self,
        graph: &EnsembleGraph,
        outputs: &[usize],
        root: &TensorPool,
        idle: bool,
    ) -> NextResponse {
        if self.delivering {
            return NextResponse::Wait;
        }
        let Some(number) = self.outgoing.front() else {
            return match idle && self.open.is_empty() {
                true => NextResponse::Ended,
                false if idle => NextResponse::Stuck,
                false => NextResponse::Wait,
            };
        };
        let Some(of) = self.open.get_mut(number) else { return NextResponse::Stuck };
        if of.executing > 0 || !of.pool.has(graph, outputs, Some(root)) {
            return if idle { NextResponse::Stuck } else { NextResponse::Wait };
        }
        let tensors = outputs.iter().map(|t| of.pool.take(graph, *t, Some(root))).collect();
        let unread = of.unread.take();
        self.spent.extend(self.open.remove(number));
        self.outgoing.pop_front();
        if idle && self.outgoing.is_empty() && self.open.is_empty() {
            return NextResponse::Last(tensors, unread);
        }
        self.delivering = true;
        NextResponse::Next(tensors, unread)
    }

    /// The response that [`StepResponses::next`] returned was sent.
    pub fn delivered(&mut self) {
        self.delivering = false;
    }
}
