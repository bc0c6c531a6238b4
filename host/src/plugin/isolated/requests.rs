//! A request as its process sees it: in the message what is small, in the arena the tensors.

use super::messages::{Batch, Call, Input, Param, param};
use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::plugin::batch::views::request_flags_of;
use crate::request::buffer::AlignedBuf;
use crate::request::{CorrelationId, InferRequest, Parameter, Signature};
use std::sync::Arc;

/// Longer texts are no parameters: all requests of a batch share one message.
const MOST_WORDS: usize = 1 << 20;

/// Sees to it that what travels in the message is small.
///
/// # Errors
/// It is not.
pub fn words_fit(request: &InferRequest) -> Result<()> {
    let of_sequence = match &request.sequence.id {
        CorrelationId::Text(text) => text.len(),
        CorrelationId::None | CorrelationId::Number(_) => 0,
    };
    let of_parameters = request.parameters.iter().map(|(key, value)| {
        // With what a parameter without text takes.
        let text = if let Parameter::String(text) = value { text.len() } else { 0 };
        key.len() + text + 32
    });
    let words = request.id.len() + of_sequence + of_parameters.sum::<usize>();
    if words > MOST_WORDS {
        return Err(Error::invalid(format!(
            "model '{}': the request has {words} bytes of id and parameters; a model that runs in a process of its own \
             takes at most {MOST_WORDS}",
            request.context().signature.model
        )));
    }
    Ok(())
}

/// What these calls were lent, of which the process does not hear.
pub fn take_back(batch: &Batch, arena: &Arena) {
    let inputs = batch.calls.iter().flat_map(|call| &call.inputs);
    inputs.filter(|input| input.offset != 0).for_each(|input| arena.take_back(input.slot));
}

/// Sees to it that the process can read every input where it lies, aligned as its backend wants it.
///
/// # Errors
/// The arena has no room.
pub fn place(request: &mut InferRequest, arena: &Arc<Arena>, align: usize) -> Result<()> {
    let signature = &request.responder.context.signature;
    for input in &mut request.inputs {
        let spec = signature.input_spec(input.index);
        let need = align.max(spec.dtype.size().unwrap_or(1));
        let data = &input.data;
        if data.is_empty()
            || (data.as_ptr().addr().is_multiple_of(need) && arena.offset_of(data).is_some())
        {
            continue;
        }
        let mut copy = AlignedBuf::for_input(Some(arena), data.len());
        if arena.offset_of(copy.as_ref()).is_none() {
            return Err(Error::unavailable(format!(
                "model '{}': {} bytes for input '{}' are not there now: the memory that is shared with the \
                 model's process is full of other requests",
                signature.model,
                data.len(),
                spec.name
            )));
        }
        copy.as_mut().copy_from_slice(data);
        input.data = copy.into_bytes();
    }
    Ok(())
}

/// The message; all inputs were placed, and are lent by this.
pub fn call(key: u64, request: &InferRequest, arena: &Arena, states: &[u32]) -> Call {
    let signature = &request.context().signature;
    let (sequence, sequence_text) = match &request.sequence.id {
        CorrelationId::None => (0, String::new()),
        CorrelationId::Number(n) => (*n, String::new()),
        CorrelationId::Text(text) => (0, text.clone()),
    };
    Call {
        key,
        id: request.id.clone(),
        sequence,
        sequence_text,
        flags: request_flags_of(request),
        batch: request.context().batch,
        priority: request.priority,
        received_ns: request.context().received_ns,
        queued_ns: request.responder.queued_ns(),
        deadline_ns: request.deadline_ns,
        inputs: inputs(request, signature, arena),
        wanted: wanted(request, states),
        params: request.parameters.iter().map(param).collect(),
    }
}

fn inputs(request: &InferRequest, signature: &Signature, arena: &Arena) -> Vec<Input> {
    let inputs = request.inputs.iter().map(|input| {
        let spec = signature.input_spec(input.index);
        // Of an empty tensor there is nothing to lend.
        let loan = (!input.data.is_empty()).then(|| arena.lend(&input.data)).flatten();
        Input {
            index: input.index as u32,
            shape: signature.to_model(spec, &input.shape).to_vec(),
            offset: loan.map_or(0, |loan| loan.offset),
            bytes: input.data.len() as u64,
            slot: loan.map_or(0, |loan| loan.slot),
        }
    });
    inputs.collect()
}

/// The outputs that the caller wants, then the states, which are made like any output.
fn wanted(request: &InferRequest, states: &[u32]) -> Vec<u32> {
    let mut wanted = Vec::with_capacity(2 * (request.context().outputs.len() + states.len()));
    for output in &request.context().outputs {
        wanted.extend([output.index as u32, output.classes]);
    }
    for state in states {
        if !request.context().outputs.iter().any(|output| output.index as u32 == *state) {
            wanted.extend([*state, 0]);
        }
    }
    wanted
}

fn param((key, value): &(String, Parameter)) -> Param {
    let value = match value {
        Parameter::String(text) => param::Value::String(text.clone()),
        Parameter::Int(number) => param::Value::Int(*number),
        Parameter::Bool(yes) => param::Value::Bool(*yes),
        Parameter::Double(number) => param::Value::Double(*number),
    };
    Param { key: key.clone(), value: Some(value) }
}
