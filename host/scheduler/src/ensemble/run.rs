//! One request on its way through the steps of an ensemble.
//!
//! The lock protects the tensors. It is not held while a step is submitted or cancelled or the
//! response is sent, since each of these may call back before it returns; nor while tensors are
//! dropped, since that may call a backend that owns them.

mod step_request;

use super::graph::EnsembleGraph;
use super::inflight::InflightLimit;
use super::step_model::{StepModel, in_ensemble};
use super::step_responses::{NextResponse, StepResponses};
use super::tensors::{EnsembleTensor, StepInputs, TensorPool, has_batch};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::stats::{BatchExecution, FailureReason};
use trtserver_request::{
    CancelObserver, CorrelationId, InferRequest, InferResponse, OutputTensor, ParameterValue,
    RequestSequence, Responder, ShapeText,
};

pub struct EnsembleRun {
    graph: Arc<EnsembleGraph>,
    /// A model that is unloaded meanwhile still serves this request.
    models: Vec<Arc<dyn StepModel>>,
    limit: Option<Arc<InflightLimit>>,
    /// The ensemble's request; its inputs are in the pool.
    request: InferRequest,
    state: Mutex<RunState>,
}

struct RunState {
    /// The tensors that depend on no decoupled step.
    pool: TensorPool,
    /// If a decoupled step is executed.
    responses: Option<Box<StepResponses>>,
    /// Steps that were taken and have not responded.
    executing: usize,
    /// Requests of submitted steps, to be cancelled.
    submitted: Vec<Weak<Responder>>,
    ended: bool,
}

/// A step whose inputs exist.
struct ReadyStep {
    /// The response of a decoupled step that it takes, 0 = none; see [`StepResponses`].
    response: u64,
    step: usize,
    read: StepInputs,
}

/// What to do once the lock is released.
enum NextAction {
    Submit(Vec<ReadyStep>),
    /// All steps have run: the outputs in requested order, `None` for what no step wrote.
    Respond(Vec<Option<EnsembleTensor>>),
    /// The request is cancelled; these steps would have been next.
    Cancelled(Vec<ReadyStep>),
    /// Outputs are missing, and no step can run.
    Stuck,
    /// Steps are executing, or the request has ended.
    Wait,
}

impl EnsembleRun {
    /// Starts a request: submits its first steps.
    pub fn start(
        graph: Arc<EnsembleGraph>,
        models: Vec<Arc<dyn StepModel>>,
        limit: Option<Arc<InflightLimit>>,
        mut request: InferRequest,
    ) {
        let inputs = std::mem::take(&mut request.inputs);
        let pool = TensorPool::new(&graph, &inputs, &request.context().outputs);
        drop(inputs);
        // An ensemble is executed once for each request, from its first step to its last.
        let execution =
            BatchExecution::new(0, 1, request.context().batch, now_ns(), &Arc::default());
        request.responder.executed_in(Arc::new(execution));
        request.context().stats.iter().for_each(|stats| stats.started());
        let requested = &request.context().outputs;
        let responses = StepResponses::for_request(&graph, requested, &pool).map(Box::new);
        let state = RunState { pool, responses, executing: 0, submitted: Vec::new(), ended: false };
        let run = Arc::new(Self { graph, models, limit, request, state: Mutex::new(state) });
        let waiting: Weak<dyn CancelObserver> =
            Arc::downgrade(&(Arc::clone(&run) as Arc<dyn CancelObserver>));
        let _ = run.request.cancel_token().notify(waiting, 0);
        run.proceed();
    }

    /// Submits the steps that can run, or responds when there are none left.
    fn proceed(self: &Arc<Self>) {
        let next = self.next();
        match next {
            NextAction::Wait => {}
            NextAction::Stuck => self.refuse(deadlock_error()),
            NextAction::Cancelled(unsent) => {
                drop(unsent);
                self.fail(Error::new(Code::Cancelled, "request was cancelled"));
            }
            NextAction::Respond(tensors) => match self.response(tensors) {
                Ok(response) => drop(self.request.responder.finish(Ok(Some(response)))),
                Err(e) => self.refuse(e),
            },
            NextAction::Submit(ready) => {
                for ready in ready {
                    if let Err(e) = self.submit(ready) {
                        return self.fail(e);
                    }
                }
            }
        }
    }

    fn next(&self) -> NextAction {
        let mut state = self.lock();
        if state.ended {
            return NextAction::Wait;
        }
        let mut ready = Vec::new();
        state.pool.take_ready(&self.graph, None, |step, read| {
            ready.push(ReadyStep { response: 0, step, read });
        });
        let RunState { pool, responses, .. } = &mut *state;
        if let Some(responses) = responses {
            responses.take_ready(&self.graph, pool, |response, step, read| {
                ready.push(ReadyStep { response, step, read });
            });
        }
        if !ready.is_empty() && self.request.cancel_token().is_cancelled() {
            return NextAction::Cancelled(ready);
        }
        state.executing += ready.len();
        if !ready.is_empty() {
            return NextAction::Submit(ready);
        }
        if state.executing > 0 || state.responses.is_some() {
            return NextAction::Wait;
        }
        state.ended = true;
        let outputs = self.outputs();
        if !state.pool.has(&self.graph, &outputs, None) {
            return NextAction::Stuck;
        }
        NextAction::Respond(outputs.iter().map(|tensor| state.pool.read(*tensor)).collect())
    }

    /// The tensors of the requested outputs.
    fn outputs(&self) -> SmallVec<[usize; 4]> {
        let requested = &self.request.context().outputs;
        requested.iter().map(|w| self.graph.outputs[w.index()]).collect()
    }

    /// A step has responded; `of`: the response of a decoupled step that it took, 0 = none.
    fn responded(self: &Arc<Self>, of: u64, step: usize, result: Result<InferResponse>) {
        match result {
            Err(e) => self.fail_by_step(e),
            Ok(response) => {
                let mut state = self.lock();
                state.executing -= 1;
                let signature = self.models[step].signature();
                let RunState { pool, responses, ended: false, .. } = &mut *state else { return };
                match responses {
                    Some(responses) if of > 0 => {
                        responses.store(&self.graph, of, step, signature, &response);
                    }
                    _ => pool.store(&self.graph, step, signature, &response),
                }
                drop(state);
                self.proceed();
                if self.graph.is_decoupled() {
                    self.deliver();
                }
            }
        }
    }

    /// A decoupled step has sent one of its responses, or ended.
    fn stream_responded(
        self: &Arc<Self>,
        of: u64,
        step: usize,
        result: Result<Option<InferResponse>>,
        last: bool,
    ) {
        let response = match result {
            Err(e) => return self.fail_by_step(e),
            Ok(response) => response,
        };
        let mut state = self.lock();
        state.executing -= usize::from(last);
        let RunState { pool, responses: Some(responses), ended: false, .. } = &mut *state else {
            return;
        };
        if let Some(response) = response {
            let signature = self.models[step].signature();
            responses.add(&self.graph, step, signature, pool, response);
        }
        if last {
            responses.step_ended(of);
        }
        drop(state);
        self.proceed();
        self.deliver();
    }

    /// Sends the responses that are complete, in the order of the decoupled step's. One thread at a
    /// time.
    fn deliver(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let RunState { pool, responses: Some(responses), executing, ended: false, .. } =
                &mut *state
            else {
                return;
            };
            let outgoing = responses.next(&self.graph, &self.outputs(), pool, *executing == 0);
            let last = matches!(
                outgoing,
                NextResponse::Last(..) | NextResponse::Ended | NextResponse::Stuck
            );
            let spent = responses.take_spent();
            state.ended = last;
            drop(state);
            drop(spent);
            let (tensors, unread) = match outgoing {
                NextResponse::Wait => return,
                NextResponse::Ended => return drop(self.request.responder.finish(Ok(None))),
                NextResponse::Stuck => return self.refuse(deadlock_error()),
                NextResponse::Next(tensors, unread) | NextResponse::Last(tensors, unread) => {
                    (tensors, unread)
                }
            };
            let response = self.response(tensors).map(|r| InferResponse { unread, ..r });
            match response {
                Ok(response) if last => {
                    return drop(self.request.responder.finish(Ok(Some(response))));
                }
                Ok(response) => drop(self.request.responder.send(response)),
                Err(e) if last => return self.refuse(e),
                Err(e) => return self.fail(e),
            }
            if let Some(responses) = &mut self.lock().responses {
                responses.delivered();
            }
        }
    }

    /// As [`EnsembleRun::fail`] for the failure of a step, which metrics and v2 statistics count
    /// twice, as in Triton.
    fn fail_by_step(&self, e: Error) {
        if e.code != Code::Cancelled && !self.lock().ended {
            let context = self.request.context();
            let ns = now_ns().saturating_sub(context.received_ns);
            context.stats.iter().for_each(|stats| stats.step_failure(ns));
        }
        self.fail(e);
    }

    /// The first error ends the request and cancels the other steps.
    fn fail(&self, e: Error) {
        let (submitted, tensors) = {
            let mut state = self.lock();
            if std::mem::replace(&mut state.ended, true) {
                return;
            }
            let tensors = (state.pool.take_all(), state.responses.take());
            (std::mem::take(&mut state.submitted), tensors)
        };
        self.refuse(e);
        cancel_responders(submitted);
        drop(tensors);
    }

    fn refuse(&self, e: Error) {
        let reason = match e.code {
            Code::Cancelled => FailureReason::Canceled,
            _ => FailureReason::Other,
        };
        let _ = self.request.responder.fail(in_ensemble(&self.graph.name, e), reason);
    }

    fn response(&self, tensors: Vec<Option<EnsembleTensor>>) -> Result<InferResponse> {
        let signature = &self.graph.signature;
        let context = self.request.context();
        let outputs = context.outputs.iter().enumerate().zip(tensors);
        // The response leaves out what the steps left out.
        let written = outputs.filter_map(|(requested, tensor)| Some((requested, tensor?)));
        let outputs = written.map(|((position, requested), tensor)| {
            let spec = &signature.outputs[requested.index()];
            let batched = has_batch(signature, spec);
            let shape = tensor.shape_for(spec.model_dims.len(), batched);
            let free = tensor.free && spec.dims == spec.model_dims;
            let caller_shape =
                if free { shape.clone() } else { signature.to_caller(spec, &shape)? };
            // A step whose model does not batch may return any number of rows.
            if batched && !free && shape.first() != Some(&i64::from(self.request.context().batch)) {
                return Err(Error::invalid(format!(
                    "output '{}' for model '{}' has shape {}, but the request has batch size {}",
                    spec.name,
                    signature.model,
                    ShapeText(&shape),
                    self.request.context().batch
                )));
            }
            Ok(OutputTensor {
                name: Arc::clone(&spec.name),
                dtype: tensor.dtype,
                shape: caller_shape,
                data: context.deliver(position, tensor.data, &spec.name)?,
            })
        });
        let outputs = outputs.collect::<Result<_>>()?;
        let parameters = sequence_parameters(&self.request.sequence);
        Ok(InferResponse { outputs, parameters, ..Default::default() })
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock()
    }
}

impl CancelObserver for EnsembleRun {
    /// Cancels the steps. The first one to end then ends the request, unless all of them may be
    /// waiting for a slot.
    fn cancelled(&self, _ticket: u64) {
        if self.limit.is_some() {
            return self.fail(Error::new(Code::Cancelled, "request was cancelled"));
        }
        let submitted = self.lock().submitted.clone();
        cancel_responders(submitted);
    }
}

/// The sequence parameters of a request, in its responses. Triton also sends them, with their
/// defaults, where the request has none.
fn sequence_parameters(sequence: &RequestSequence) -> Vec<(String, ParameterValue)> {
    let RequestSequence { id, start, end } = sequence;
    let id = match id {
        CorrelationId::None if !start && !end => return Vec::new(),
        CorrelationId::None => ParameterValue::Int(0),
        // As in Triton: the interface of backends has no larger integer.
        CorrelationId::Number(number) => ParameterValue::Int(number.cast_signed()),
        CorrelationId::Text(text) => ParameterValue::String(text.clone()),
    };
    vec![
        ("sequence_id".to_owned(), id),
        ("sequence_start".to_owned(), ParameterValue::Bool(*start)),
        ("sequence_end".to_owned(), ParameterValue::Bool(*end)),
    ]
}

fn deadlock_error() -> Error {
    Error::invalid(
        "unexpected deadlock, at least one output is not set while no more ensemble steps can be made",
    )
}

impl RunState {
    /// Keeps a step's request to cancel it. Requests that have ended are removed before the list
    /// would grow.
    fn add_submitted(&mut self, responder: &Arc<Responder>) {
        if self.submitted.len() == self.submitted.capacity() {
            self.submitted.retain(|responder| responder.strong_count() > 0);
        }
        self.submitted.push(Arc::downgrade(responder));
    }
}

fn cancel_responders(responders: Vec<Weak<Responder>>) {
    for responder in responders.iter().filter_map(Weak::upgrade) {
        responder.cancel_token.cancel();
    }
}
