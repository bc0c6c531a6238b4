//! One request on its way through the steps of an ensemble.
//!
//! Its lock is held to look at the tensors and never while a step is submitted, cancelled or answered: each of these
//! may come back here before it returns. Nor are tensors let go of under it: their memory may be a plugin's.

use super::graph::Graph;
use super::pool::{Pool, Read, Tensor, has_batch};
use super::{StepModel, inside};
use crate::clock::now_ns;
use crate::error::{Code, Error, Result};
use crate::request::CancelObserver;
use crate::request::{
    InferRequest, InferResponse, InputTensor, OutputTensor, RequestContext, RequestedOutput,
    Responder, ResponseSink, ShapeText, SingleResponse, check,
};
use crate::stats::{Execution, FailureReason};
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

pub struct Run {
    graph: Arc<Graph>,
    /// Held until the end: a model that is unloaded meanwhile still serves this request.
    models: Vec<Arc<dyn StepModel>>,
    /// The caller's request; its inputs are in the pool.
    request: InferRequest,
    state: Mutex<State>,
}

struct State {
    pool: Pool,
    /// Steps taken and not answered.
    open: usize,
    /// Those that were submitted, to be cancelled.
    submitted: Vec<Weak<Responder>>,
    ended: bool,
}

/// What to do next.
enum Next {
    Submit(Vec<(usize, Read)>),
    /// Nothing can run any more: these are the outputs, in the order in which the caller asked.
    Answer(Vec<Option<Tensor>>),
    /// The caller has gone; these would have been next.
    Cancelled(Vec<(usize, Read)>),
    /// Others are at work, or all is over.
    Wait,
}

impl Run {
    /// Takes a request from its arrival to its first steps.
    pub fn start(graph: Arc<Graph>, models: Vec<Arc<dyn StepModel>>, mut request: InferRequest) {
        let inputs = std::mem::take(&mut request.inputs);
        let pool = Pool::new(&graph, &inputs, &request.context().outputs);
        drop(inputs);
        // An ensemble is executed once for each request, from its first step to its last.
        let execution = Execution::new(0, 1, request.context().batch, now_ns(), &Arc::default());
        request.responder.executed_in(Arc::new(execution));
        let state = State { pool, open: 0, submitted: Vec::new(), ended: false };
        let run = Arc::new(Self { graph, models, request, state: Mutex::new(state) });
        let waiting: Weak<dyn CancelObserver> =
            Arc::downgrade(&(Arc::clone(&run) as Arc<dyn CancelObserver>));
        let _ = run.request.cancel_token().notify(waiting, 0);
        run.proceed();
    }

    /// Submits what can run, or answers when nothing is left to do.
    fn proceed(self: &Arc<Self>) {
        // Found under the lock, done without it.
        let next = self.next();
        match next {
            Next::Wait => {}
            Next::Cancelled(unsent) => {
                drop(unsent);
                self.fail(Error::new(Code::Cancelled, "request was cancelled"));
            }
            Next::Answer(tensors) => match self.response(tensors) {
                Ok(response) => drop(self.request.responder.finish(Ok(Some(response)))),
                Err(e) => self.refuse(e),
            },
            Next::Submit(ready) => {
                for (step, read) in ready {
                    if let Err(e) = self.submit(step, read) {
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
        let ready = state.pool.take_ready(&self.graph, optional);
        if !ready.is_empty() && self.request.cancel_token().is_cancelled() {
            return Next::Cancelled(ready);
        }
        state.open += ready.len();
        if !ready.is_empty() {
            return Next::Submit(ready);
        }
        if state.open > 0 {
            return Next::Wait;
        }
        state.ended = true;
        let outputs = self.request.context().outputs.iter().map(|w| self.graph.outputs[w.index]);
        Next::Answer(outputs.map(|tensor| state.pool.read(tensor)).collect())
    }

    /// Makes and submits a step's request. `Ok` also when the run has ended meanwhile.
    fn submit(self: &Arc<Self>, step: usize, read: Read) -> Result<()> {
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
        let batch = check::inputs(signature, &from.id, &inputs)?;
        inputs.sort_by_key(|i| i.index);
        inputs.iter_mut().for_each(InputTensor::align);
        let outputs = {
            let state = self.lock();
            if state.ended {
                return Ok(());
            }
            self.wanted(step, &state.pool)?
        };
        let sink = StepSink { run: Arc::clone(self), step, single: SingleResponse::default() };
        let context = RequestContext {
            signature: Arc::clone(signature),
            stats: Some(Arc::clone(model.stats())),
            received_ns: now_ns(),
            batch,
            outputs,
        };
        let responder = Responder::new(context, sink);
        self.lock().submitted.push(Arc::downgrade(&responder));
        let request = InferRequest {
            id: from.id.clone(),
            inputs,
            sequence: from.sequence.clone(),
            priority: from.priority,
            timeout_us: from.timeout_us,
            parameters: from.parameters.clone(),
            deadline_ns: from.deadline_ns,
            streaming: false,
            warmup: from.warmup,
            responder: Arc::clone(&responder),
        };
        // Who cancelled or failed before the line above did not see this request.
        if self.request.cancel_token().is_cancelled() || self.lock().ended {
            responder.cancel_token.cancel();
        }
        drop(responder);
        model.submit(request);
        Ok(())
    }

    /// The outputs of a step that somebody reads.
    fn wanted(&self, step: usize, pool: &Pool) -> Result<SmallVec<[RequestedOutput; 2]>> {
        let signature = self.models[step].signature();
        let writes = self.graph.steps[step].writes.iter();
        let read = writes.filter(|(_, tensor)| pool.is_read(*tensor));
        read.map(|(name, _)| match signature.output(name) {
            Some(index) => Ok(RequestedOutput { index, classes: 0 }),
            None => Err(self.changed(step, "output", name)),
        })
        .collect()
    }

    /// The model was another one when the ensemble was loaded.
    fn changed(&self, step: usize, side: &str, name: &str) -> Error {
        let model = &self.graph.steps[step].model;
        Error::internal(format!("model '{model}' has no {side} '{name}' any more"))
    }

    /// A step was answered.
    fn answered(self: &Arc<Self>, step: usize, result: Result<InferResponse>) {
        match result {
            Err(e) => self.fail(e),
            Ok(response) => {
                let mut state = self.lock();
                state.open -= 1;
                if !state.ended {
                    let signature = self.models[step].signature();
                    state.pool.store(&self.graph, step, signature, &response);
                }
                drop(state);
                self.proceed();
            }
        }
    }

    /// The first error ends the request; steps that still run are told.
    ///
    /// It counts once. (The original counts a request whose step failed twice.)
    fn fail(&self, e: Error) {
        let (submitted, tensors) = {
            let mut state = self.lock();
            if std::mem::replace(&mut state.ended, true) {
                return;
            }
            (std::mem::take(&mut state.submitted), state.pool.take_all())
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
        let _ = self.request.responder.fail(inside(&self.graph.name, e), reason);
    }

    fn response(&self, tensors: Vec<Option<Tensor>>) -> Result<InferResponse> {
        let signature = &self.graph.signature;
        let outputs = self.request.context().outputs.iter().zip(tensors).map(|(wanted, tensor)| {
            let spec = &signature.outputs[wanted.index];
            let Some(tensor) = tensor else {
                return Err(Error::invalid(
                    "unexpected deadlock, at least one output is not set while no more ensemble steps can be made",
                ));
            };
            let batched = has_batch(signature, spec);
            let shape = tensor.shape_for(spec.model_dims.len(), batched);
            let caller_shape = signature.to_caller(spec, &shape)?;
            // A step without batches may make any number of rows.
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
                data: tensor.data,
            })
        });
        Ok(InferResponse { outputs: outputs.collect::<Result<_>>()?, parameters: Vec::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl CancelObserver for Run {
    /// The caller went away: the steps end, and the first of them ends the request.
    fn cancelled(&self, _ticket: u64) {
        let submitted = self.lock().submitted.clone();
        cancel(submitted);
    }
}

fn cancel(replies: Vec<Weak<Responder>>) {
    for reply in replies.iter().filter_map(Weak::upgrade) {
        reply.cancel_token.cancel();
    }
}

/// Takes a step's answer and goes on with the next steps, on the thread of whoever answers.
struct StepSink {
    run: Arc<Run>,
    step: usize,
    single: SingleResponse,
}

impl ResponseSink for StepSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        if let Some(answer) = self.single.put(response, last) {
            self.run.answered(self.step, answer);
        }
    }
}
