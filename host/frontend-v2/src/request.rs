//! An inference request of v2 between the wire and the scheduler.

use super::lookup::stopping_error;
use super::parameters::RequestParameters;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::state::ServerPhase;
use trtserver_models::{FoundVersion, OpenVersion};
use trtserver_request::ObservedInference;
use trtserver_request::StreamLimit;
use trtserver_request::check;
use trtserver_request::check::IdPrefix;
use trtserver_request::memory::OutputMemory;
use trtserver_request::{
    InferRequest, InputTensor, ModelSignature, RequestContext, RequestedOutput, Responder, Sink,
    UsedMemory, request_tracing,
};
use trtserver_request_trace::ActiveTrace;
use trtserver_wire::context::{FrontendContext, failure_reason};
use trtserver_wire::decode_workers::MAX_INLINE;

/// A request as it was read, before its parts are checked against each other and the model.
#[derive(Default)]
pub struct UncheckedRequest {
    pub id: String,
    pub parameters: RequestParameters,
    pub inputs: SmallVec<[InputTensor; 2]>,
    pub outputs: SmallVec<[RequestedOutput; 2]>,
    pub deadline_ns: u64,
    pub streaming: bool,
    pub stream: Option<Arc<dyn StreamLimit>>,
    /// A backend sends it, for a request that it executes: accepted while the server drains.
    pub nested: bool,
    pub trace: Option<Arc<ActiveTrace>>,
}

impl UncheckedRequest {
    /// Adds a requested output, and returns its position in the configuration; `None` if it was
    /// requested before in the same way. `destination`: where the client wants it.
    ///
    /// # Errors
    /// The model has no such output, or it was requested before in another way.
    pub fn request_output(
        &mut self,
        signature: &ModelSignature,
        name: &str,
        classes: u32,
        destination: Option<Arc<OutputMemory>>,
    ) -> Result<Option<usize>> {
        let index = check::find_output(signature, name)?;
        if let Some(first) = self.outputs.iter().find(|w| w.index() == index) {
            let shared = first.destination.is_some() || destination.is_some();
            return match first.classes == classes && !shared {
                true => Ok(None),
                false => Err(self.requested_twice(name)),
            };
        }
        let mut output = RequestedOutput::new(index, classes);
        output.destination = destination;
        self.outputs.push(output);
        Ok(Some(index))
    }

    /// The error for an output that is requested in two ways.
    pub fn requested_twice(&self, name: &str) -> Error {
        Error::invalid(format!(
            "{}output '{name}' already exists in request",
            IdPrefix::new(&self.id)
        ))
    }

    /// Submitting takes long: it copies much, or the response cache hashes much.
    pub fn takes_long(&self, found: &OpenVersion) -> bool {
        let bytes = || self.inputs.iter().map(|input| input.data.len()).sum();
        self.copies_much() || found.hashes_long(bytes)
    }

    /// Submitting copies much: strings in shared memory, which are copied before they are checked,
    /// or misaligned tensors there.
    pub fn copies_much(&self) -> bool {
        let copied = |input: &InputTensor| input.dtype.size().is_none() || !input.is_aligned(1);
        self.inputs.iter().any(|input| {
            input.data.placed().is_some_and(|slice| slice.len() > MAX_INLINE) && copied(input)
        })
    }

    /// Checks the request, which was read for `found`, and queues it on the version that executes
    /// it. Returns that version, and a reference for cancellation, which does not keep the request
    /// alive.
    pub fn submit(
        self,
        ctx: &FrontendContext,
        found: &FoundVersion,
        received_ns: u64,
        sink: Sink,
    ) -> Result<(Weak<Responder>, Arc<OpenVersion>)> {
        if let Some(trace) = &self.trace {
            trace.identified(&self.id);
        }
        let executing = found.executing_as_read(&self.parameters.sequence);
        Ok((self.queue(ctx, &executing, received_ns, sink)?, executing))
    }

    fn queue(
        mut self,
        ctx: &FrontendContext,
        served: &OpenVersion,
        received_ns: u64,
        sink: Sink,
    ) -> Result<Weak<Responder>> {
        if !self.nested || served.for_begun_sequences {
            ctx.require_open(served, &self.parameters.sequence).map_err(|e| {
                match ctx.state.phase() {
                    ServerPhase::Exiting => stopping_error(),
                    _ => e,
                }
            })?;
        }
        let signature = &served.signature;
        let batch = check::check_inputs(signature, &self.id, &mut self.inputs)?;
        self.inputs.sort_by_key(|i| i.index);
        self.inputs.iter_mut().try_for_each(InputTensor::align)?;
        if self.outputs.is_empty() {
            self.outputs = check::all_outputs(signature);
        }
        let context = RequestContext {
            signature: Arc::clone(signature),
            stats: Some(Arc::clone(&served.stats)),
            received_ns,
            batch,
            wording: trtserver_request::context::ErrorWording::default(),
            used_memory: UsedMemory::from_tensors(&self.inputs, &self.outputs),
            outputs: self.outputs,
            waits: self.stream.is_some() && served.decoupled(),
            stream: self.stream,
        };
        let observed = ObservedInference::current(|| self.id.clone(), &served.name, served.version);
        let responder = Responder::observed(context, sink, self.trace, observed);
        let weak = Arc::downgrade(&responder);
        let request = InferRequest {
            id: self.id,
            inputs: self.inputs,
            sequence: self.parameters.sequence,
            priority: self.parameters.priority,
            timeout_us: self.parameters.timeout_us,
            parameters: self.parameters.custom,
            deadline_ns: self.deadline_ns,
            streaming: self.streaming,
            warmup: false,
            client: ctx.client_turn(),
            responder,
        };
        if let Some(trace) = request.responder.trace() {
            request_tracing::trace_submission(trace, &request, served.version);
        }
        served.submit(request);
        Ok(weak)
    }
}

/// Counts a request that was refused after its model was found.
pub fn count_refused(
    served: &OpenVersion,
    trace: Option<&Arc<ActiveTrace>>,
    received_ns: u64,
    error: Error,
) -> Error {
    if let Some(trace) = trace {
        trace.refused(&error);
    }
    let ns = now_ns().saturating_sub(received_ns);
    served.stats.failure(0, ns, failure_reason(&error), false);
    if let Some(refused) = ObservedInference::current(String::new, &served.name, served.version) {
        refused.ended(0, received_ns, None, Some(&error));
    }
    error
}
