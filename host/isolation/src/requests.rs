//! Encodes requests for a child process: metadata in the message, tensors in the arena.

use super::messages::{
    DestinationMessage, ExecuteBatch, InputMessage, RequestMessage, RequestStream, TraceMessage,
};
use super::{params, regions};
use std::sync::Arc;
use trtserver_base::arena::Arena;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_plugin_host::batch::views::request_flags;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::{CorrelationId, DType, InferRequest, ModelSignature};

/// Removes the child's references to the inputs of a batch that was not sent.
pub fn unshare_inputs(batch: &ExecuteBatch, arena: &Arena) {
    let inputs = batch.requests.iter().flat_map(|request| &request.inputs);
    inputs
        .filter(|input| input.offset != 0 && input.region == 0)
        .for_each(|input| arena.unshare(input.slot));
}

/// Copies inputs into the arena that are neither in it nor in memory that the child opens, too, or
/// not aligned as the backend requires. Memory of its GPU the child aligns itself; strings and
/// shape tensors, which are read on the CPU, are copied. Returns whether a string was copied from a
/// GPU: it is not checked yet.
///
/// # Errors
/// The arena is exhausted.
pub fn move_to_arena(
    request: &mut InferRequest,
    arena: &Arc<Arena>,
    align: usize,
    gpu: Option<i32>,
) -> Result<bool> {
    let mut strings_from_gpu = false;
    let signature = &request.responder.context.signature;
    for input in &mut request.inputs {
        let spec = signature.input_spec(input.index);
        let need = align.max(spec.dtype.size().unwrap_or(1));
        let on_cpu = input.data.location().is_cpu_accessible();
        let suits = match on_cpu {
            true => input.is_aligned(align),
            false => spec.dtype != DType::String && !spec.shape_tensor,
        };
        if let Some(slice) = input.data.placed()
            && regions::region_number(slice, gpu).is_some()
            && suits
        {
            continue;
        }
        strings_from_gpu |= !on_cpu && spec.dtype == DType::String;
        let data = match input.data.readable() {
            Some(data) => data,
            None => &input.data.to_cpu()?,
        };
        if data.is_empty()
            || (data.as_ptr().addr().is_multiple_of(need) && arena.find_offset(data).is_some())
        {
            continue;
        }
        let copy = AlignedBuf::try_for_input(Some(arena), data.len(), LedgerHolder::Input);
        let copy = copy.filter(|copy| arena.find_offset(copy.as_ref()).is_some());
        let Some(mut copy) = copy else {
            return Err(Error::unavailable(format!(
                "model '{}': shared-memory arena exhausted: {} bytes for input '{}' cannot be allocated while \
                 other requests of the isolated model hold its memory",
                signature.model,
                data.len(),
                spec.name
            )));
        };
        copy.as_mut().copy_from_slice(data);
        input.data = copy.into_bytes().into();
    }
    Ok(strings_from_gpu)
}

/// The message of a request whose inputs are in the arena; shares them with the child.
pub fn encode_request(
    key: u64,
    request: &InferRequest,
    arena: &Arena,
    states: &[u32],
    gpu: Option<i32>,
) -> RequestMessage {
    let signature = &request.context().signature;
    let (sequence, sequence_text) = match &request.sequence.id {
        CorrelationId::None => (0, String::new()),
        CorrelationId::Number(n) => (*n, String::new()),
        CorrelationId::Text(text) => (0, text.clone()),
    };
    RequestMessage {
        key,
        id: request.id.clone(),
        sequence,
        sequence_text,
        flags: request_flags(request),
        batch: request.context().batch,
        priority: request.priority,
        received_ns: request.context().received_ns,
        queued_ns: request.responder.queued_ns(),
        deadline_ns: request.deadline_ns,
        timeout_us: request.timeout_us,
        trace: request.responder.trace().map(|trace| {
            let context = trace.outgoing_context();
            TraceMessage { parent: context.traceparent(), state: context.state }
        }),
        inputs: inputs(request, signature, arena, gpu),
        destinations: destinations(request, states, gpu),
        requested_outputs: requested_outputs(request, states),
        params: request.parameters.iter().cloned().map(params::encode_parameter).collect(),
        stream: request.context().stream.as_ref().map(|stream| RequestStream {
            number: stream.stream(),
            limit: stream.backlog().limit,
            waits: request.context().waits,
            timeout_ms: stream.timeout().as_millis() as u64,
        }),
    }
}

fn inputs(
    request: &InferRequest,
    signature: &ModelSignature,
    arena: &Arena,
    gpu: Option<i32>,
) -> Vec<InputMessage> {
    let inputs = request.inputs.iter().map(|input| {
        let spec = signature.input_spec(input.index);
        let (index, shape) = (input.index as u32, signature.to_model(spec, &input.shape).to_vec());
        let bytes = input.data.len() as u64;
        if let Some(slice) = input.data.placed()
            && let Some(region) = regions::region_number(slice, gpu)
        {
            return InputMessage {
                index,
                shape,
                offset: slice.offset() as u64,
                bytes,
                slot: 0,
                region,
            };
        }
        // An empty tensor is not shared.
        let data = input.data.readable().filter(|data| !data.is_empty());
        let shared = data.and_then(|data| arena.share(data));
        let offset = shared.map_or(0, |shared| shared.offset);
        let slot = shared.map_or(0, |shared| shared.slot);
        InputMessage { index, shape, offset, bytes, slot, region: 0 }
    });
    inputs.collect()
}

/// The destinations that the child writes itself. The host copies an output that is a state, too,
/// because it keeps the state.
fn destinations(
    request: &InferRequest,
    states: &[u32],
    gpu: Option<i32>,
) -> Vec<DestinationMessage> {
    let context = request.context();
    let outputs = context.outputs.iter().zip(0..);
    let outputs = outputs.filter(|(requested, _)| !states.contains(&(requested.index() as u32)));
    let destinations = outputs.filter_map(|(_, output)| {
        let slice = context.destination(output as usize)?.slice();
        let (offset, bytes) = (slice.offset() as u64, slice.len() as u64);
        Some(DestinationMessage {
            output,
            region: regions::region_number(slice, gpu)?,
            offset,
            bytes,
        })
    });
    destinations.collect()
}

/// The requested outputs, then the states, which the backend produces like outputs.
fn requested_outputs(request: &InferRequest, states: &[u32]) -> Vec<u32> {
    let mut requested = Vec::with_capacity(2 * (request.context().outputs.len() + states.len()));
    for output in &request.context().outputs {
        requested.extend([output.index() as u32, output.classes]);
    }
    for state in states {
        if !request.context().outputs.iter().any(|output| output.index() as u32 == *state) {
            requested.extend([*state, 0]);
        }
    }
    requested
}
