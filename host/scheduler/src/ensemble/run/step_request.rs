//! The request that a step of an ensemble sends to its model: inputs, requested outputs and the
//! memory of both, and where the response goes.

use super::super::inflight::{InflightSlot, StepStream};
use super::super::tensors::{TensorPool, has_batch};
use super::{EnsembleRun, ReadyStep};
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::fair_clients::ClientTurn;
use trtserver_request::memory::OutputMemory;
use trtserver_request::{
    InferRequest, InferResponse, InputTensor, RequestContext, RequestedOutput, Responder,
    ResponseSink, SingleResponse, StreamLimit, UsedMemory, check, request_tracing,
};

impl EnsembleRun {
    /// Submits a step, or has it wait for a slot. `Ok` also if the request has ended meanwhile.
    pub(super) fn submit(self: &Arc<Self>, ready: ReadyStep) -> Result<()> {
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

    fn submit_with(self: &Arc<Self>, ready: ReadyStep, slot: Option<InflightSlot>) -> Result<()> {
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
        let batch = match check::check_inputs(signature, &from.id, &mut inputs)? {
            // All its inputs are optional and absent.
            _ if inputs.is_empty() => from.context().batch,
            batch => batch,
        };
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
            // The memory of the whole request: steps run at the same time, and must not write what
            // another one reads.
            wording: from.context().wording,
            used_memory: match &from.context().used_memory {
                Some(used) => Some(used.with_device_inputs(&inputs)),
                None => UsedMemory::from_tensors(&inputs, &[]),
            },
            outputs,
            stream: decoupled.then(|| self.stream(step)).flatten(),
            waits: from.context().waits,
        };
        let trace = from.responder.trace().map(|trace| trace.child(&signature.model));
        let responder = Responder::traced(context, sink, trace);
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
            client: from.client.as_ref().map(ClientTurn::again),
            responder: Arc::clone(&responder),
        };
        if let Some(trace) = responder.trace() {
            request_tracing::trace_submission(trace, &request, model.version());
        }
        // A cancellation or error before the line above did not reach this request.
        if self.request.cancel_token().is_cancelled() || self.lock().ended {
            responder.cancel_token.cancel();
        }
        drop(responder);
        model.submit(request);
        Ok(())
    }

    /// The stream of a decoupled step: its backend waits for the client of the request, and for the
    /// steps that take its responses.
    fn stream(&self, step: usize) -> Option<Arc<dyn StreamLimit>> {
        let stream = self.request.context().stream.clone()?;
        let Some(limit) = &self.limit else { return Some(stream) };
        let limit = StepStream {
            limit: Arc::clone(limit),
            readers: self.graph.readers(step),
            ensemble: Arc::clone(&self.graph.name),
            stream,
        };
        Some(Arc::new(limit))
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

    /// A tensor is read by steps that take it in GPU memory, and, if it is an output of the
    /// ensemble, by a step of another ensemble that does.
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

    /// The destination of a tensor that is an output of the ensemble and is not read by a step.
    /// (What a step reads must be in memory that the client does not change.)
    fn destination(&self, tensor: usize, pool: &TensorPool) -> Option<Arc<OutputMemory>> {
        let context = self.request.context();
        context.used_memory.as_ref()?;
        let written = |w: &RequestedOutput| self.graph.outputs[w.index()] == tensor;
        let position = context.outputs.iter().position(written)?;
        let memory = context.destination(position).filter(|_| pool.is_read_once(tensor))?;
        let name = &self.graph.signature.outputs[context.outputs[position].index()].name;
        Some(Arc::new(memory.named_for_step(name)))
    }

    /// The model was replaced by one that the ensemble was not checked against.
    fn changed(&self, step: usize, side: &str, name: &str) -> Error {
        let model = &self.graph.steps[step].model;
        Error::internal(format!("model '{model}' has no {side} '{name}' any more"))
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
    _slot: Option<InflightSlot>,
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
