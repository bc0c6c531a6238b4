//! Decodes request messages.

use super::model::OpenModel;
use super::regions::Regions;
use super::responses::{HostSink, ResponseSender};
use crate::messages::{DestinationMessage, InputMessage, RequestMessage};
use crate::params;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::BatchExecution;
use trtserver_plugin_api::abi::request::request_flags;
use trtserver_request::memory::OutputMemory;
use trtserver_request::tensor::element_count;
use trtserver_request::{
    CorrelationId, InferRequest, InputTensor, RequestContext, RequestSequence, RequestedOutput,
    Responder, ShapeText, TensorData, UsedMemory,
};
use trtserver_request_trace::TraceContext;

/// Decodes a request; its responses go to `responses`.
///
/// # Errors
/// The message does not fit the model or has an invalid memory range, which is a fault of the host.
pub fn decode_request(
    message: RequestMessage,
    (model, regions): (&OpenModel, &Regions),
    responses: &Arc<ResponseSender>,
    execution: &Arc<BatchExecution>,
) -> Result<InferRequest> {
    // All are read even if one is invalid: each has a reference, which must be released.
    let inputs: SmallVec<[Result<InputTensor>; 2]> =
        message.inputs.into_iter().map(|i| input(i, model, regions)).collect();
    let inputs = inputs.into_iter().collect::<Result<SmallVec<[InputTensor; 2]>>>()?;
    let outputs = message.requested_outputs.chunks_exact(2).map(|pair| {
        let [index, classes] = [pair[0], pair[1]];
        if index as usize >= model.signature.outputs.len() {
            return Err(fault(
                model,
                format!("requests output number {index}, which does not exist"),
            ));
        }
        Ok(RequestedOutput::new(index as usize, classes))
    });
    let mut outputs = outputs.collect::<Result<SmallVec<[RequestedOutput; 2]>>>()?;
    for DestinationMessage { output, region, offset, bytes } in message.destinations {
        let Some(requested) = outputs.get_mut(output as usize) else {
            return Err(fault(
                model,
                format!("has a destination for output number {output}, which it does not request"),
            ));
        };
        let slice = regions.slice(region, offset, bytes)?;
        requested.destination = Some(Arc::new(OutputMemory::new(slice)));
    }
    let has = |flag| message.flags & flag != 0;
    let stream = message.stream.map(|of| (model.streams.enter(&of, &model.arena), of.waits));
    let trace = message.trace.and_then(|trace| {
        let context = TraceContext::parse(trace.parent.as_bytes(), Some(trace.state.as_bytes()))?;
        Some(model.tracer.begin_remote(&model.signature.model, context))
    });
    let stream_request = stream.as_ref().map(|(stream, _)| stream.clone());
    let sink = HostSink::new(responses, message.key, execution, stream_request, trace.clone());
    let context = RequestContext {
        signature: Arc::clone(&model.signature),
        stats: None,
        received_ns: message.received_ns,
        batch: message.batch,
        wording: trtserver_request::context::ErrorWording::default(),
        used_memory: UsedMemory::from_tensors(&inputs, &outputs),
        outputs,
        waits: stream.as_ref().is_some_and(|(_, waits)| *waits),
        stream: stream.map(|(limit, _)| limit as _),
    };
    let request = InferRequest {
        id: message.id,
        inputs,
        sequence: RequestSequence {
            id: match (message.sequence, message.sequence_text) {
                (0, text) if text.is_empty() => CorrelationId::None,
                (0, text) => CorrelationId::Text(text),
                (number, _) => CorrelationId::Number(number),
            },
            start: has(request_flags::SEQUENCE_START),
            end: has(request_flags::SEQUENCE_END),
        },
        priority: message.priority,
        timeout_us: message.timeout_us,
        parameters: message.params.into_iter().filter_map(params::decode_parameter).collect(),
        deadline_ns: message.deadline_ns,
        streaming: has(request_flags::STREAMING),
        warmup: has(request_flags::WARMUP),
        client: None,
        responder: Responder::traced(context, sink, trace),
    };
    request.responder.queued(message.queued_ns);
    request.responder.executed_in(Arc::clone(execution));
    responses.open(message.key, &request.responder);
    Ok(request)
}

fn input(input: InputMessage, model: &OpenModel, regions: &Regions) -> Result<InputTensor> {
    let InputMessage { index, shape, offset, bytes, slot, region } = input;
    let data: TensorData = if region != 0 {
        regions.slice(region, offset, bytes)?.into()
    } else if bytes == 0 && offset == 0 {
        TensorData::EMPTY
    } else {
        model.reader.bytes(offset, bytes, Some(slot))?.into()
    };
    let (index, signature) = (index as usize, &model.signature);
    if index >= signature.inputs.len() + signature.hidden.len() {
        return Err(fault(model, format!("has input number {index}, which does not exist")));
    }
    let spec = signature.input_spec(index);
    // Backends rely on the shape.
    if let Some(size) = spec.dtype.size() {
        let right = element_count(&shape).and_then(|n| n.checked_mul(size));
        if right != Some(data.len()) {
            return Err(fault(
                model,
                format!(
                    "has {bytes} bytes for input '{}' of shape {}",
                    spec.name,
                    ShapeText(&shape)
                ),
            ));
        }
    }
    Ok(InputTensor { index, dtype: spec.dtype, shape: shape.into(), data })
}

fn fault(model: &OpenModel, what: String) -> Error {
    Error::internal(format!(
        "model '{}': a request from the server {what}; this is a fault of the server",
        model.signature.model
    ))
}
