//! A response while a plugin builds it: every output checked against the declaration when it is made.

use super::declared::{Declared, Rows};
use super::memory::{Donation, Memory, size_of_parts};
use crate::error::{Error, Result};
use crate::request::buffer::AlignedBuf;
use crate::request::implicit_state::StateTensor;
use crate::request::strings;
use crate::request::tensor::element_count;
use crate::request::{DType, InferResponse, OutputTensor, Parameter, Responder, Shape, ShapeText};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_plugin_api::abi::types::Buf;

/// What a `trts_response` points at.
pub struct Building {
    reply: Arc<Responder>,
    outputs: SmallVec<[Built; 2]>,
    pub parameters: Vec<(String, Parameter)>,
}

struct Built {
    place: Place,
    memory: Memory,
    /// Strings that were walked already.
    checked: bool,
}

/// Where a tensor goes: to the caller, into the memory of its sequence, or both.
struct Place {
    /// Place among the outputs that the caller asked for, number in the configuration, the caller's shape.
    output: Option<(usize, usize, Shape)>,
    state: Option<(usize, Shape)>,
    dtype: DType,
}

impl Place {
    fn clashes(&self, other: &Place) -> bool {
        let number = |p: &Place| (p.output.as_ref().map(|o| o.0), p.state.as_ref().map(|s| s.0));
        let (mine, others) = (number(self), number(other));
        (mine.0.is_some() && mine.0 == others.0) || (mine.1.is_some() && mine.1 == others.1)
    }
}

impl Building {
    pub fn new(reply: Arc<Responder>) -> Self {
        Self { reply, outputs: SmallVec::new(), parameters: Vec::new() }
    }

    /// Memory for an output; `None` when nobody wants it.
    pub fn alloc(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<*mut u8>> {
        let Some(place) = self.declare(name, dtype, shape, bytes)? else { return Ok(None) };
        let Some(mut memory) = AlignedBuf::try_new(bytes as usize) else {
            return Err(self.error(format!(
                "the backend asked for {bytes} bytes for output '{name}', which are not there"
            )));
        };
        let ptr = memory.as_mut_ptr();
        self.outputs.push(Built { place, memory: Memory::Ours(memory), checked: false });
        Ok(Some(ptr))
    }

    /// Takes donated memory as an output, without a copy when it is in one piece.
    pub fn adopt(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        parts: &[Buf],
        donation: Donation,
    ) -> Result<()> {
        let bytes = size_of_parts(name, parts).map_err(|e| self.error(e.message))?;
        if let Some(place) = self.declare(name, dtype, shape, bytes)? {
            let Some(data) = Donation::bytes(&mut Some(donation), parts) else {
                return Err(self.error(format!("{bytes} bytes for output '{name}' are not there")));
            };
            let memory = Memory::Donated(data);
            self.outputs.push(Built { place, memory, checked: false });
        }
        Ok(())
    }

    /// Takes memory that another process made as an output.
    pub fn adopt_bytes(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        data: Bytes,
    ) -> Result<()> {
        if let Some(place) = self.declare(name, dtype, shape, data.len() as u64)? {
            self.outputs.push(Built { place, memory: Memory::Donated(data), checked: false });
        }
        Ok(())
    }

    /// Takes this call's rows of a block that answers several calls.
    pub fn take_rows(&mut self, rows: Declared, data: Bytes) {
        if let Some(place) = self.place(rows) {
            self.outputs.push(Built { place, memory: Memory::Donated(data), checked: true });
        }
    }

    /// Checks an output and finds out who wants it.
    fn declare(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<Place>> {
        let signature = &self.reply.context.signature;
        let rows = Rows::Request(self.reply.context.batch);
        let declared = Declared::check(signature, name, dtype, shape, bytes, rows)?;
        let Some(place) = self.place(declared) else { return Ok(None) };
        if self.outputs.iter().any(|built| built.place.clashes(&place)) {
            return Err(self.error(format!("the backend produced output '{name}' twice")));
        }
        Ok(Some(place))
    }

    fn place(&self, declared: Declared) -> Option<Place> {
        let output = declared.output.and_then(|(index, shape)| {
            self.reply.context.position(index).map(|place| (place, index, shape))
        });
        // Without a sequence there is no next step that would read it.
        let state = declared.state.filter(|_| self.reply.implicit_state().is_some());
        (output.is_some() || state.is_some()).then_some(Place {
            output,
            state,
            dtype: declared.dtype,
        })
    }

    /// Sends the response. An output that was asked for and not made is an error for the caller.
    pub fn send(mut self, last: bool, error: Option<Error>) -> Result<()> {
        let reply = Arc::clone(&self.reply);
        if let Some(execution) = reply.execution() {
            super::timing::note_times(execution);
        }
        let result = match error {
            Some(error) => Err(error),
            None => self.finish(),
        };
        drop(self);
        match result {
            Err(error) => reply.finish(Err(error)),
            Ok((response, states)) if last => {
                // Before the end: the sequence's next step may begin at once.
                if !states.is_empty()
                    && !reply.is_finished()
                    && let Some(memory) = reply.implicit_state()
                {
                    memory.store(states);
                }
                reply.finish(Ok(Some(response)))
            }
            Ok((response, _)) => reply.send(response),
        }
    }

    #[allow(clippy::type_complexity, reason = "named nowhere else")]
    fn finish(&mut self) -> Result<(InferResponse, SmallVec<[(usize, StateTensor); 2]>)> {
        let signature = Arc::clone(&self.reply.context.signature);
        let requested = &self.reply.context.outputs;
        let mut made: SmallVec<[Option<OutputTensor>; 2]> = SmallVec::new();
        made.resize_with(requested.len(), || None);
        let mut states = SmallVec::new();
        for Built { place, memory, checked } in std::mem::take(&mut self.outputs) {
            let data = memory.into_bytes();
            if place.dtype == DType::String && !checked {
                self.check_strings(&place, &data)?;
            }
            if let Some((state, shape)) = place.state {
                states.push((state, StateTensor { shape, data: data.clone() }));
            }
            if let Some((at, index, shape)) = place.output {
                let name = Arc::clone(&signature.outputs[index].name);
                let tensor = OutputTensor { name, dtype: place.dtype, shape, data };
                made.get_mut(at).map(|to| to.replace(tensor));
            }
        }
        let mut outputs = SmallVec::with_capacity(requested.len());
        for (at, tensor) in made.into_iter().enumerate() {
            let Some(tensor) = tensor else {
                let missing = &signature.outputs[requested[at].index];
                if missing.optional {
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
        Ok((InferResponse { outputs, parameters }, states))
    }

    fn check_strings(&self, place: &Place, data: &[u8]) -> Result<()> {
        let signature = &self.reply.context.signature;
        let (name, shape) = match (&place.output, &place.state) {
            (Some((_, index, shape)), _) => (&signature.outputs[*index].name, shape),
            (None, Some((state, shape))) => (&signature.states[*state].output, shape),
            (None, None) => return Ok(()),
        };
        match strings::check(data, element_count(shape).unwrap_or(0)) {
            Ok(_) => Ok(()),
            Err(fault) => Err(self.error(format!(
                "the backend produced malformed strings in output '{name}' of shape {}: {fault:?}",
                ShapeText(shape)
            ))),
        }
    }

    fn error(&self, text: String) -> Error {
        Error::internal(format!("model '{}': {text}", self.reply.context.signature.model))
    }
}
