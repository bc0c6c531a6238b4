//! Builds a response: allocates or adopts outputs, each checked against its declaration, and sends
//! it.

use super::gpu::{DeviceOutput, GpuInstance};
use super::memory::{Donation, OutputStorage, preferred_gpu, size_of_parts};
use super::output_declaration::{OutputDeclaration, OutputRows};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_plugin_api::abi::types::{self, Buf};
use trtserver_request::memory::PlacedSlice;
use trtserver_request::state_spec::StateTensor;
use trtserver_request::strings;
use trtserver_request::tensor::element_count;
use trtserver_request::unread::{RESPONSE_OVERHEAD, UnreadResponse};
use trtserver_request::{
    DType, InferResponse, OutputTensor, ParameterValue, RequestContext, Responder, Shape,
    ShapeText, TensorData,
};

/// A response being built, the target of a response handle.
pub struct ResponseBuilder {
    responder: Arc<Responder>,
    /// The GPU of the instance.
    gpu: Option<Arc<GpuInstance>>,
    outputs: SmallVec<[BuiltOutput; 2]>,
    pub parameters: Vec<(String, ParameterValue)>,
    unread: Option<Box<UnreadResponse>>,
}

struct BuiltOutput {
    destination: Destination,
    memory: OutputStorage,
    /// The string lengths were checked already.
    checked: bool,
}

/// Where a tensor goes: into the response, into the implicit state of the sequence, or both.
struct Destination {
    /// Position among the requested outputs, index in the configuration, shape for the client.
    output: Option<(usize, usize, Shape)>,
    /// Index of the state, shape for the model.
    state: Option<(usize, Shape)>,
    dtype: DType,
}

impl Destination {
    /// The output is wanted in GPU memory, and nothing on the CPU reads it.
    fn stays_on_device(&self, context: &RequestContext) -> bool {
        let position = self.output.as_ref().map(|(position, ..)| *position);
        let own = self.state.is_none() && self.dtype != DType::String;
        own && position.is_some_and(|position| context.is_wanted_on_device(position))
    }

    fn overlaps(&self, other: &Destination) -> bool {
        let number =
            |p: &Destination| (p.output.as_ref().map(|o| o.0), p.state.as_ref().map(|s| s.0));
        let (a, b) = (number(self), number(other));
        (a.0.is_some() && a.0 == b.0) || (a.1.is_some() && a.1 == b.1)
    }
}

impl ResponseBuilder {
    pub fn new(responder: Arc<Responder>, gpu: Option<Arc<GpuInstance>>) -> Self {
        Self { responder, gpu, outputs: SmallVec::new(), parameters: Vec::new(), unread: None }
    }

    pub fn gpu(&self) -> Option<&Arc<GpuInstance>> {
        self.gpu.as_ref()
    }

    pub fn responder(&self) -> &Arc<Responder> {
        &self.responder
    }

    /// Whether an output is in device memory.
    pub fn is_on_device(&self) -> bool {
        self.outputs.iter().any(|built| built.memory.is_on_device())
    }

    /// Takes the outputs in device memory, which go to [`ResponseBuilder::put_written`] when they
    /// are written.
    pub fn take_device_outputs(&mut self) -> Vec<DeviceOutput> {
        let context = &self.responder.context;
        let taken = self.outputs.iter_mut().filter_map(|built| {
            let mut output = built.memory.take_device_output()?;
            if built.destination.stays_on_device(context) {
                output.stay();
            }
            Some(output)
        });
        taken.collect()
    }

    /// Puts the written outputs in, in the same order.
    pub fn put_written(&mut self, written: Vec<TensorData>) {
        let mut written = written.into_iter();
        self.outputs.iter_mut().for_each(|built| built.memory.put_written(&mut written));
    }

    /// Memory for an output; `None` when it is not requested.
    pub fn alloc(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
        preferred: types::Memory,
    ) -> Result<Option<Buf>> {
        let Some(destination) = self.check(name, dtype, shape, bytes)? else { return Ok(None) };
        let (memory, buf) = match self.direct_memory(&destination, bytes, preferred) {
            Some(slice) => OutputStorage::destination(slice, self.tag(&destination)),
            None => {
                let tag = self.tag(&destination);
                OutputStorage::allocate(name, bytes, preferred, self.gpu.as_ref(), tag)
                    .map_err(|e| self.out_of_memory(e))?
            }
        };
        self.outputs.push(BuiltOutput { destination, memory, checked: false });
        Ok(Some(buf))
    }

    /// Adopts donated memory as an output, without a copy if it is one piece.
    pub fn adopt(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        parts: &[Buf],
        donation: Donation,
    ) -> Result<()> {
        let bytes = size_of_parts(name, parts).map_err(|e| self.error(e.message))?;
        if let Some(destination) = self.check(name, dtype, shape, bytes)? {
            let (gpu, tag) = (self.gpu.as_ref(), self.tag(&destination));
            let memory = OutputStorage::adopt(name, &mut Some(donation), parts, gpu, tag)
                .map_err(|e| self.out_of_memory(e))?;
            self.outputs.push(BuiltOutput { destination, memory, checked: false });
        }
        Ok(())
    }

    /// What an output is entered under in the ledger. A state lasts longer than the output that it
    /// may be, too.
    fn tag(&self, destination: &Destination) -> MemoryTag {
        let holder =
            if destination.state.is_some() { LedgerHolder::State } else { LedgerHolder::Output };
        self.responder.context.signature.owner.tag(holder)
    }

    /// The memory in which the client wants the output, if the backend may write it directly.
    /// Strings are checked and states are kept first, in memory that the client cannot change.
    fn direct_memory(
        &self,
        destination: &Destination,
        bytes: u64,
        preferred: types::Memory,
    ) -> Option<PlacedSlice> {
        let Destination { output: Some((position, ..)), state: None, dtype } = destination else {
            return None;
        };
        if *dtype == DType::String {
            return None;
        }
        let gpu = preferred_gpu(preferred, self.gpu.as_ref()).map(|gpu| gpu.location());
        self.responder.context.direct_memory(*position, usize::try_from(bytes).ok()?, gpu)
    }

    fn out_of_memory(&self, error: Error) -> Error {
        let message = self.error(error.message).message;
        Error { message, ..error }
    }

    /// Adopts memory of a child process as an output.
    pub fn adopt_bytes(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        data: Bytes,
    ) -> Result<()> {
        if let Some(destination) = self.check(name, dtype, shape, data.len() as u64)? {
            let memory = OutputStorage::Donated(data);
            self.outputs.push(BuiltOutput { destination, memory, checked: false });
        }
        Ok(())
    }

    /// Adds an output of a child process that is in the memory where the client wants it.
    pub fn add_written(&mut self, name: &str, dtype: u32, shape: &[i64], bytes: u64) -> Result<()> {
        let Some(destination) = self.check(name, dtype, shape, bytes)? else { return Ok(()) };
        let position = destination.output.as_ref().map(|(position, ..)| *position);
        let memory = position.and_then(|position| self.responder.context.destination(position));
        let Some(memory) = memory.filter(|_| destination.state.is_none()) else {
            return Err(self.error(format!("output '{name}' has no memory of the client")));
        };
        let memory = OutputStorage::Placed(memory.take(name, bytes as usize)?);
        self.outputs.push(BuiltOutput { destination, memory, checked: true });
        Ok(())
    }

    /// Adds the rows of this request from a scattered output.
    pub fn add_rows(&mut self, rows: OutputDeclaration, data: TensorData) {
        if let Some(destination) = self.destination(rows) {
            let memory = OutputStorage::from(data);
            self.outputs.push(BuiltOutput { destination, memory, checked: true });
        }
    }

    /// Checks an output; `None` when it is not requested.
    fn check(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<Destination>> {
        let signature = &self.responder.context.signature;
        let rows = OutputRows::Request(self.responder.context.batch);
        let declared = OutputDeclaration::check(signature, name, dtype, shape, bytes, rows)?;
        let Some(destination) = self.destination(declared) else { return Ok(None) };
        if self.outputs.iter().any(|built| built.destination.overlaps(&destination)) {
            return Err(self.error(format!("the backend produced output '{name}' twice")));
        }
        Ok(Some(destination))
    }

    fn destination(&self, declared: OutputDeclaration) -> Option<Destination> {
        let output = declared.output.and_then(|(index, shape)| {
            self.responder.context.position(index).map(|position| (position, index, shape))
        });
        // A state is kept only for a sequence.
        let state = declared.state.filter(|_| self.responder.implicit_state().is_some());
        (output.is_some() || state.is_some()).then_some(Destination {
            output,
            state,
            dtype: declared.dtype,
        })
    }

    /// The response does not carry the output, because the client wants it in memory of its own.
    fn is_delivered(&self, built: &BuiltOutput) -> bool {
        let output = built.destination.output.as_ref();
        output.is_some_and(|(position, ..)| self.responder.context.destination(*position).is_some())
    }

    /// Counts the response as unread on its stream. With `wait`, blocks a decoupled model while the
    /// limit is reached.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED: the limit is reached. CANCELLED: the client does not wait for further
    /// responses; the last one is sent nevertheless, because it finishes the request.
    pub fn admit(&mut self, last: bool, wait: bool) -> Result<()> {
        let token = &self.responder.cancel_token;
        let waits = self.responder.context.waits;
        let admitted = match &self.responder.context.stream {
            // What an ordinary model sends is counted by the sink.
            Some(stream) if waits || !last => {
                let sent = self.outputs.iter().filter(|built| !self.is_delivered(built));
                let bytes = sent.map(|built| built.memory.len()).sum::<usize>();
                let limit = Arc::clone(stream);
                let unread = limit.admit(bytes + RESPONSE_OVERHEAD, wait && waits, token);
                unread.map(|unread| self.unread = Some(Box::new(unread)))
            }
            _ if token.is_cancelled() => Err(Error::new(Code::Cancelled, "request was cancelled")),
            _ => Ok(()),
        };
        match admitted {
            Err(e) if last && e.code == Code::Cancelled => Ok(()),
            admitted => admitted,
        }
    }

    /// Sends the response, or an error if a requested output is missing.
    pub fn send(mut self, last: bool, error: Option<Error>) -> Result<()> {
        let responder = Arc::clone(&self.responder);
        if let Some(execution) = responder.counted_execution() {
            super::timing::note_times(&execution);
        }
        let result = match error {
            Some(error) => Err(error),
            None => self.finish(&responder.context),
        };
        drop(self);
        match result {
            Err(error) => responder.finish(Err(error)),
            Ok((response, states)) if last => {
                // Stored before the end of the request: the next one of the sequence may start at
                // once.
                if !states.is_empty()
                    && !responder.is_finished()
                    && responder.context.fault().is_none()
                    && let Some(memory) = responder.implicit_state()
                {
                    memory.store(states);
                }
                responder.finish(Ok(Some(response)))
            }
            Ok((response, _)) => responder.send(response),
        }
    }

    #[allow(clippy::type_complexity, reason = "used once")]
    fn finish(
        &mut self,
        context: &RequestContext,
    ) -> Result<(InferResponse, SmallVec<[(usize, StateTensor); 2]>)> {
        let RequestContext { signature, outputs: requested, .. } = context;
        let mut produced: SmallVec<[Option<OutputTensor>; 2]> = SmallVec::new();
        produced.resize_with(requested.len(), || None);
        let mut states = SmallVec::new();
        for BuiltOutput { destination, memory, checked } in std::mem::take(&mut self.outputs) {
            let data = memory.into_data()?;
            if destination.dtype == DType::String
                && !checked
                && let Some(bytes) = data.readable()
            {
                self.check_strings(&destination, bytes)?;
            }
            if let Some((state, shape)) = destination.state {
                states.push((state, StateTensor { shape, data: data.clone() }));
            }
            if let Some((at, index, shape)) = destination.output {
                let name = Arc::clone(&signature.outputs[index].name);
                let data = context.deliver(at, data, &name)?;
                let tensor = OutputTensor { name, dtype: destination.dtype, shape, data };
                produced.get_mut(at).map(|to| to.replace(tensor));
            }
        }
        let mut outputs = SmallVec::with_capacity(requested.len());
        for (at, tensor) in produced.into_iter().enumerate() {
            let Some(tensor) = tensor else {
                let missing = &signature.outputs[requested[at].index()];
                if missing.optional || signature.is_free(missing) {
                    continue;
                }
                let name = &missing.name;
                return Err(self.error(format!(
                    "the backend did not produce output '{name}', which the request asked for"
                )));
            };
            outputs.push(tensor);
        }
        let parameters = std::mem::take(&mut self.parameters);
        let unread = self.unread.take();
        Ok((InferResponse { outputs, parameters, unread }, states))
    }

    fn check_strings(&self, destination: &Destination, data: &[u8]) -> Result<()> {
        let signature = &self.responder.context.signature;
        let (name, shape) = match (&destination.output, &destination.state) {
            (Some((_, index, shape)), _) => (&signature.outputs[*index].name, shape),
            (None, Some((state, shape))) => (&signature.states[*state].output, shape),
            (None, None) => return Ok(()),
        };
        match strings::check_strings(data, element_count(shape).unwrap_or(0)) {
            Ok(_) => Ok(()),
            Err(fault) => Err(self.error(format!(
                "the backend produced malformed strings in output '{name}' of shape {}: {fault:?}",
                ShapeText(shape)
            ))),
        }
    }

    fn error(&self, text: String) -> Error {
        Error::internal(format!("model '{}': {text}", self.responder.context.signature.model))
    }
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
