//! One request on its way through the steps of an ensemble.
//!
//! The lock protects the tensors. It is not held while a step is submitted or cancelled or the response is sent, since each
//! of these may call back before it returns; nor while tensors are dropped, since that may call a backend that owns them.

use super::graph::Graph;
use super::inflight::{InflightLimit, Slot, StepStream};
use super::step_model::{StepModel, in_ensemble};
use super::step_responses::{Outgoing, StepResponses};
use super::tensors::{StepInputs, Tensor, TensorPool, has_batch};
use crate::clock::now_ns;
use crate::error::{Code, Error, Result};
use crate::request::CancelObserver;
use crate::request::context::RequestStream;
use crate::request::memory::OutputMemory;
use crate::request::{
    InferRequest, InferResponse, InputTensor, OutputTensor, RequestContext, RequestedOutput,
    Responder, ResponseSink, ShapeText, SingleResponse, UsedMemory, check,
};
use crate::stats::{Execution, FailureReason};
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

pub struct EnsembleRun {
    graph: Arc<Graph>,
    /// A model that is unloaded meanwhile still serves this request.
    models: Vec<Arc<dyn StepModel>>,
    limit: Option<Arc<InflightLimit>>,
    /// The ensemble's request; its inputs are in the pool.
    request: InferRequest,
    state: Mutex<State>,
}

struct State {
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
enum Next {
    Submit(Vec<ReadyStep>),
    /// All steps have run: the outputs in requested order.
    Respond(Vec<Option<Tensor>>),
    /// The request is cancelled; these steps would have been next.
    Cancelled(Vec<ReadyStep>),
    /// Steps are executing, or the request has ended.
    Wait,
}

impl EnsembleRun {
    /// Starts a request: submits its first steps.
    pub fn start(
        graph: Arc<Graph>,
        models: Vec<Arc<dyn StepModel>>,
        limit: Option<Arc<InflightLimit>>,
        mut request: InferRequest,
    ) {
        let inputs = std::mem::take(&mut request.inputs);
        let pool = TensorPool::new(&graph, &inputs, &request.context().outputs);
        drop(inputs);
        // An ensemble is executed once for each request, from its first step to its last.
        let execution = Execution::new(0, 1, request.context().batch, now_ns(), &Arc::default());
        request.responder.executed_in(Arc::new(execution));
        request.context().stats.iter().for_each(|stats| stats.started());
        let requested = &request.context().outputs;
        let responses = StepResponses::of_request(&graph, requested, &pool).map(Box::new);
        let state = State { pool, responses, executing: 0, submitted: Vec::new(), ended: false };
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
            Next::Wait => {}
            Next::Cancelled(unsent) => {
                drop(unsent);
                self.fail(Error::new(Code::Cancelled, "request was cancelled"));
            }
            Next::Respond(tensors) => match self.response(tensors) {
                Ok(response) => drop(self.request.responder.finish(Ok(Some(response)))),
                Err(e) => self.refuse(e),
            },
            Next::Submit(ready) => {
                for ready in ready {
                    if let Err(e) = self.submit(ready) {
                        return self.fail(e);
                    }
                }
            }
        }
    }

    fn next(&self) -> Next {
        let mut state = self.lock();
        if state.ended {
            return Next::Wait;
        }
        let optional = |step: usize, name: &str| {
            let signature = self.models[step].signature();
            signature.input(name).is_some_and(|input| signature.inputs[input].optional)
        };
        let mut ready = Vec::new();
        state.pool.take_ready(&self.graph, optional, None, |step, read| {
            ready.push(ReadyStep { response: 0, step, read });
        });
        let State { pool, responses, .. } = &mut *state;
        if let Some(responses) = responses {
            responses.take_ready(&self.graph, optional, pool, |response, step, read| {
                ready.push(ReadyStep { response, step, read });
            });
        }
        if !ready.is_empty() && self.request.cancel_token().is_cancelled() {
            return Next::Cancelled(ready);
        }
        state.executing += ready.len();
        if !ready.is_empty() {
            return Next::Submit(ready);
        }
        if state.executing > 0 || state.responses.is_some() {
            return Next::Wait;
        }
        state.ended = true;
        let outputs = self.request.context().outputs.iter().map(|w| self.graph.outputs[w.index()]);
        Next::Respond(outputs.map(|tensor| state.pool.read(tensor)).collect())
    }

    /// Submits a step, or has it wait for a slot. `Ok` also if the request has ended meanwhile.
    fn submit(self: &Arc<Self>, ready: ReadyStep) -> Result<()> {
        let Some(limit) = &self.limit else { return self.submit_with(ready, None) };
        let (run, step) = (Arc::clone(self), ready.step);
        let submit = move |slot| {
            if let Err(e) = run.submit_with(ready, Some(slot)) {
                run.fail(e);
            }
        };
        limit.submit(step, Box::new(submit));
        Ok(())
    }

    fn submit_with(self: &Arc<Self>, ready: ReadyStep, slot: Option<Slot>) -> Result<()> {
        let ReadyStep { response, step, read } = ready;
        let model = &self.models[step];
        let signature = model.signature();
        let mut inputs: SmallVec<[InputTensor; 2]> = SmallVec::new();
        for (name, tensor) in read {
            let Some(index) = signature.input(&name) else {
                return Err(self.changed(step, "input", &name));
            };
            let spec = &signature.inputs[index];
            let shape = tensor.shape_for(spec.dims.len(), has_batch(signature, spec));
            inputs.push(InputTensor { index, dtype: tensor.dtype, shape, data: tensor.data });
        }
        let from = &self.request;
        let batch = check::inputs(signature, &from.id, &mut inputs)?;
        inputs.sort_by_key(|i| i.index);
        inputs.iter_mut().try_for_each(InputTensor::align)?;
        let outputs = {
            let state = self.lock();
            if state.ended {
                return Ok(());
            }
            self.requested_outputs(step, &state.pool)?
        };
        let decoupled = self.graph.decoupled[step];
        let sink = StepSink {
            run: Arc::clone(self),
            response,
            step,
            single: (!decoupled).then(SingleResponse::default),
            _slot: slot,
        };
        let context = RequestContext {
            signature: Arc::clone(signature),
            stats: Some(Arc::clone(model.stats())),
            received_ns: now_ns(),
            batch,
            // That of the whole request: steps run at the same time, and must not write what another one reads.
            used_memory: match &from.context().used_memory {
                Some(used) => Some(used.with_device_inputs(&inputs)),
                None => UsedMemory::of(&inputs, &[]),
            },
            outputs,
            stream: decoupled.then(|| self.stream(step)).flatten(),
        };
        let responder = Responder::new(context, sink);
        self.lock().add_submitted(&responder);
        let request = InferRequest {
            id: from.id.clone(),
            inputs,
            sequence: from.sequence.clone(),
            priority: from.priority,
            timeout_us: from.timeout_us,
            parameters: from.parameters.clone(),
            deadline_ns: from.deadline_ns,
            streaming: decoupled,
            warmup: from.warmup,
            responder: Arc::clone(&responder),
        };
        // A cancellation or error before the line above did not reach this request.
        if self.request.cancel_token().is_cancelled() || self.lock().ended {
            responder.cancel_token.cancel();
        }
        drop(responder);
        model.submit(request);
        Ok(())
    }

    /// The stream of a decoupled step: its backend waits for the client of the request, and for the steps that take its responses.
    fn stream(&self, step: usize) -> Option<RequestStream> {
        let stream = self.request.context().stream.clone()?;
        let Some(limit) = &self.limit else { return Some(stream) };
        let limit = StepStream {
            limit: Arc::clone(limit),
            readers: self.graph.readers(step),
            ensemble: Arc::clone(&self.graph.name),
            stream: stream.limit,
        };
        Some(RequestStream { limit: Arc::new(limit), ..stream })
    }

    /// The outputs of a step that will be read.
    fn requested_outputs(
        &self,
        step: usize,
        pool: &TensorPool,
    ) -> Result<SmallVec<[RequestedOutput; 2]>> {
        let signature = self.models[step].signature();
        let writes = self.graph.steps[step].writes.iter();
        let read = writes.filter(|(_, tensor)| pool.is_read(*tensor));
        read.map(|(name, tensor)| match signature.output(name) {
            Some(index) => {
                let destination = self.destination(*tensor, pool);
                let output = RequestedOutput::new(index, 0).written_to(destination);
                let model = &self.models[step];
                Ok(output.on_device(model.writes_on_gpu(name) && self.stays_on_gpu(*tensor)))
            }
            None => Err(self.changed(step, "output", name)),
        })
        .collect()
    }

    /// A tensor is read by steps that take it in GPU memory, and, if it is an output of the ensemble, by a step of another ensemble that
    /// does.
    fn stays_on_gpu(&self, tensor: usize) -> bool {
        let requested = &self.request.context().outputs;
        let stays = match requested.is_empty() {
            true => !self.graph.outputs.contains(&tensor),
            false => {
                let mut as_output =
                    requested.iter().filter(|w| self.graph.outputs[w.index()] == tensor);
                as_output.all(RequestedOutput::stays_on_device)
            }
        };
        stays && self.graph.is_read_on_gpus(tensor, &self.models)
    }

    /// The destination of a tensor that is an output of the ensemble and is not read by a step. (What a step reads must be in memory that
    /// the client does not change.)
    fn destination(&self, tensor: usize, pool: &TensorPool) -> Option<Arc<OutputMemory>> {
        let context = self.request.context();
        context.used_memory.as_ref()?;
        let written = |w: &RequestedOutput| self.graph.outputs[w.index()] == tensor;
        let position = context.outputs.iter().position(written)?;
        let memory = context.destination(position).filter(|_| pool.is_read_once(tensor))?;
        let name = &self.graph.signature.outputs[context.outputs[position].index()].name;
        Some(Arc::new(memory.of_step(name)))
    }

    /// The model was replaced by one that the ensemble was not checked against.
    fn changed(&self, step: usize, side: &str, name: &str) -> Error {
        let model = &self.graph.steps[step].model;
        Error::internal(format!("model '{model}' has no {side} '{name}' any more"))
    }

    /// A step has responded; `of`: the response of a decoupled step that it took, 0 = none.
    fn responded(self: &Arc<Self>, of: u64, step: usize, result: Result<InferResponse>) {
        match result {
            Err(e) => self.fail(e),
            Ok(response) => {
                let mut state = self.lock();
                state.executing -= 1;
                let signature = self.models[step].signature();
                let State { pool, responses, ended: false, .. } = &mut *state else { return };
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
            Err(e) => return self.fail(e),
            Ok(response) => response,
        };
        let mut state = self.lock();
        state.executing -= usize::from(last);
        let State { pool, responses: Some(responses), ended: false, .. } = &mut *state else {
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

    /// Sends the responses that are complete, in the order of the decoupled step's. One thread at a time.
    fn deliver(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let State { pool, responses: Some(responses), executing, ended: false, .. } =
                &mut *state
            else {
                return;
            };
            let requested = &self.request.context().outputs;
            let outputs: SmallVec<[usize; 4]> =
                requested.iter().map(|w| self.graph.outputs[w.index()]).collect();
            let outgoing = responses.next(&self.graph, &outputs, pool, *executing == 0);
            let last = matches!(outgoing, Outgoing::Last(..) | Outgoing::Ended | Outgoing::Stuck);
            let spent = responses.take_spent();
            state.ended = last;
            drop(state);
            drop(spent);
            let (tensors, unread) = match outgoing {
                Outgoing::Wait => return,
                Outgoing::Ended => return drop(self.request.responder.finish(Ok(None))),
                Outgoing::Stuck => return self.refuse(deadlock()),
                Outgoing::Next(tensors, unread) | Outgoing::Last(tensors, unread) => {
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

    /// The first error ends the request and cancels the other steps. It counts once. (Triton counts a request whose step
    /// failed twice.)
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
        cancel(submitted);
        drop(tensors);
    }

    fn refuse(&self, e: Error) {
        let reason = match e.code {
            Code::Cancelled => FailureReason::Canceled,
            _ => FailureReason::Other,
        };
        let _ = self.request.responder.fail(in_ensemble(&self.graph.name, e), reason);
    }

    fn response(&self, tensors: Vec<Option<Tensor>>) -> Result<InferResponse> {
        let signature = &self.graph.signature;
        let context = self.request.context();
        let outputs = context.outputs.iter().enumerate().zip(tensors);
        let outputs = outputs.map(|((position, requested), tensor)| {
            let spec = &signature.outputs[requested.index()];
            let Some(tensor) = tensor else {
                return Err(deadlock());
            };
            let batched = has_batch(signature, spec);
            let shape = tensor.shape_for(spec.model_dims.len(), batched);
            let caller_shape = signature.to_caller(spec, &shape)?;
            // A step whose model does not batch may return any number of rows.
            if batched && shape.first() != Some(&i64::from(self.request.context().batch)) {
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
        Ok(InferResponse { outputs: outputs.collect::<Result<_>>()?, ..Default::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl CancelObserver for EnsembleRun {
    /// Cancels the steps. The first one to end then ends the request, unless all of them may be waiting for a slot.
    fn cancelled(&self, _ticket: u64) {
        if self.limit.is_some() {
            return self.fail(Error::new(Code::Cancelled, "request was cancelled"));
        }
        let submitted = self.lock().submitted.clone();
        cancel(submitted);
    }
}

fn deadlock() -> Error {
    Error::invalid(
        "unexpected deadlock, at least one output is not set while no more ensemble steps can be made",
    )
}

impl State {
    /// Keeps a step's request to cancel it. Those that have ended are removed before the list would grow.
    fn add_submitted(&mut self, responder: &Arc<Responder>) {
        if self.submitted.len() == self.submitted.capacity() {
            self.submitted.retain(|responder| responder.strong_count() > 0);
        }
        self.submitted.push(Arc::downgrade(responder));
    }
}

fn cancel(responders: Vec<Weak<Responder>>) {
    for responder in responders.iter().filter_map(Weak::upgrade) {
        responder.cancel_token.cancel();
    }
}

/// Takes a step's response and submits the next steps, on the thread that delivers the response.
struct StepSink {
    run: Arc<EnsembleRun>,
    /// The response of a decoupled step that it took, 0 = none.
    response: u64,
    step: usize,
    /// `None` for a decoupled step.
    single: Option<SingleResponse>,
    _slot: Option<Slot>,
}

impl ResponseSink for StepSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        match &mut self.single {
            None => self.run.stream_responded(self.response, self.step, response, last),
            Some(single) => {
                if let Some(response) = single.put(response, last) {
                    self.run.responded(self.response, self.step, response);
                }
            }
        }
    }
}
