//! A call as the host sent it, as the request that the plugin will see.

use super::model::Opened;
use super::responses::{Link, ToHost};
use crate::error::{Error, Result};
use crate::plugin::isolated::messages::{Call, Input, Param, param};
use crate::request::tensor::element_count;
use crate::request::{
    CorrelationId, InferRequest, InputTensor, Parameter, RequestContext, RequestedOutput,
    Responder, Sequence, ShapeText,
};
use crate::stats::Execution;
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_plugin_api::abi::request::request_flags;

/// Makes the request, whose answers go to `link`.
///
/// # Errors
/// The call does not fit the model or points out of the shared memory: a fault of the host's.
pub fn request(
    call: Call,
    model: &Opened,
    link: &Arc<Link>,
    execution: &Arc<Execution>,
) -> Result<InferRequest> {
    // All of them, whatever is wrong with one: each is a loan to be given back.
    let inputs: SmallVec<[Result<InputTensor>; 2]> =
        call.inputs.into_iter().map(|i| input(i, model)).collect();
    let inputs = inputs.into_iter().collect::<Result<_>>()?;
    let outputs = call.wanted.chunks_exact(2).map(|pair| {
        let [index, classes] = [pair[0], pair[1]];
        if index as usize >= model.signature.outputs.len() {
            return Err(fault(model, format!("wants output number {index}, which is not there")));
        }
        Ok(RequestedOutput { index: index as usize, classes })
    });
    let outputs = outputs.collect::<Result<_>>()?;
    let has = |flag| call.flags & flag != 0;
    let sink = ToHost::new(link, call.key, execution);
    let context = RequestContext {
        signature: Arc::clone(&model.signature),
        stats: None,
        received_ns: call.received_ns,
        batch: call.batch,
        outputs,
    };
    let request = InferRequest {
        id: call.id,
        inputs,
        sequence: Sequence {
            id: match (call.sequence, call.sequence_text) {
                (0, text) if text.is_empty() => CorrelationId::None,
                (0, text) => CorrelationId::Text(text),
                (number, _) => CorrelationId::Number(number),
            },
            start: has(request_flags::SEQUENCE_START),
            end: has(request_flags::SEQUENCE_END),
        },
        priority: call.priority,
        timeout_us: 0,
        parameters: parameters(call.params),
        deadline_ns: call.deadline_ns,
        streaming: has(request_flags::STREAMING),
        warmup: has(request_flags::WARMUP),
        responder: Responder::new(context, sink),
    };
    request.responder.queued(call.queued_ns);
    request.responder.executed_in(Arc::clone(execution));
    link.open(call.key, &request.responder);
    Ok(request)
}

fn input(input: Input, model: &Opened) -> Result<InputTensor> {
    let Input { index, shape, offset, bytes, slot } = input;
    let data = if bytes == 0 && offset == 0 {
        Bytes::new()
    } else {
        model.reader.bytes(offset, bytes, Some(slot))?
    };
    let (index, signature) = (index as usize, &model.signature);
    if index >= signature.inputs.len() + signature.hidden.len() {
        return Err(fault(model, format!("has input number {index}, which is not there")));
    }
    let spec = signature.input_spec(index);
    // A plugin believes the shape.
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

fn fault(model: &Opened, what: String) -> Error {
    Error::internal(format!(
        "model '{}': a call from the server {what}; this is a fault of the server",
        model.signature.model
    ))
}

fn parameters(params: Vec<Param>) -> Vec<(String, Parameter)> {
    let value = |param: Param| {
        let value = match param.value? {
            param::Value::String(s) => Parameter::String(s),
            param::Value::Int(i) => Parameter::Int(i),
            param::Value::Bool(b) => Parameter::Bool(b),
            param::Value::Double(d) => Parameter::Double(d),
        };
        Some((param.key, value))
    };
    params.into_iter().filter_map(value).collect()
}
