//! The messages of v2 inference over gRPC: requests encoded with their tensors as slices, responses
//! decoded in place.

use super::request::{Data, InferRequest, Parameter, SequenceId, SharedMemory};
use super::response::{InferResponse, Output};
use crate::error::{Error, Result};
use crate::transport::body::Segments;
use crate::transport::grpc;
use bytes::Bytes;
use trtserver_proto::v2::infer_parameter::ParameterChoice;
use trtserver_proto::v2::{InferParameter, InferTensorContents, ModelInferResponse};
use trtserver_proto_wire::{WireType, put_bytes, put_tag, put_varint};

/// `inference.ModelInferRequest`, framed later.
pub(super) fn encode_request(request: &InferRequest, stream: bool) -> Segments {
    let mut head = Vec::with_capacity(256);
    put_text(&mut head, 1, &request.model);
    put_text(&mut head, 2, &request.version);
    put_text(&mut head, 3, &request.id);
    put_parameters(&mut head, request, stream);
    let (mut inner, mut shape) = (Vec::new(), Vec::new());
    for input in &request.inputs {
        inner.clear();
        put_text(&mut inner, 1, &input.name);
        put_text(&mut inner, 2, &input.datatype);
        shape.clear();
        input.shape.iter().for_each(|dim| put_varint(&mut shape, *dim as u64));
        if !shape.is_empty() {
            put_bytes(&mut inner, 3, &shape);
        }
        if let Data::SharedMemory(memory) = &input.data {
            put_shared_memory(&mut inner, 4, memory);
        }
        put_bytes(&mut head, 5, &inner);
    }
    for output in &request.outputs {
        inner.clear();
        put_text(&mut inner, 1, &output.name);
        if output.classes > 0 {
            put_parameter(&mut inner, 2, "classification", &Parameter::Int(output.classes.into()));
        }
        if let Some(memory) = &output.shared_memory {
            put_shared_memory(&mut inner, 2, memory);
        }
        put_bytes(&mut head, 6, &inner);
    }
    let mut message = grpc::message_segments(head.len() + 64);
    message.put(&head);
    for input in request.inputs.iter().filter(|i| !matches!(i.data, Data::SharedMemory(_))) {
        head.clear();
        put_tag(&mut head, 7, WireType::Bytes);
        put_varint(&mut head, input.raw_len() as u64);
        message.put(&head);
        input.raw().iter().for_each(|slice| message.put_shared(slice));
    }
    message
}

fn put_parameters(out: &mut Vec<u8>, request: &InferRequest, stream: bool) {
    if let Some(sequence) = &request.sequence {
        let id = match &sequence.id {
            SequenceId::Number(number) => Parameter::Int(*number as i64),
            SequenceId::Text(text) => Parameter::String(text.clone()),
        };
        put_parameter(out, 4, "sequence_id", &id);
        put_parameter(out, 4, "sequence_start", &Parameter::Bool(sequence.start));
        put_parameter(out, 4, "sequence_end", &Parameter::Bool(sequence.end));
    }
    if request.priority > 0 {
        put_parameter(out, 4, "priority", &Parameter::Uint(request.priority));
    }
    if request.timeout_us > 0 {
        put_parameter(out, 4, "timeout", &Parameter::Int(request.timeout_us as i64));
    }
    if stream && request.empty_final_response {
        put_parameter(out, 4, "triton_enable_empty_final_response", &Parameter::Bool(true));
    }
    for (name, value) in &request.parameters {
        put_parameter(out, 4, name, value);
    }
}

fn put_shared_memory(out: &mut Vec<u8>, field: u32, memory: &SharedMemory) {
    let region = Parameter::String(memory.region.clone());
    put_parameter(out, field, "shared_memory_region", &region);
    let byte_size = Parameter::Int(memory.byte_size as i64);
    put_parameter(out, field, "shared_memory_byte_size", &byte_size);
    if memory.offset > 0 {
        let offset = Parameter::Int(memory.offset as i64);
        put_parameter(out, field, "shared_memory_offset", &offset);
    }
}

/// An entry of a map of parameters. The value is written also if it is the default, because it is a
/// member of a oneof.
fn put_parameter(out: &mut Vec<u8>, field: u32, name: &str, value: &Parameter) {
    let mut inner = Vec::with_capacity(16);
    match value {
        Parameter::Bool(value) => put_oneof_number(&mut inner, 1, u64::from(*value)),
        Parameter::Int(value) => put_oneof_number(&mut inner, 2, *value as u64),
        Parameter::String(value) => put_bytes(&mut inner, 3, value.as_bytes()),
        Parameter::Double(value) => {
            put_tag(&mut inner, 4, WireType::Fixed64);
            inner.extend_from_slice(&value.to_le_bytes());
        }
        Parameter::Uint(value) => put_oneof_number(&mut inner, 5, *value),
    }
    let mut entry = Vec::with_capacity(name.len() + inner.len() + 4);
    put_bytes(&mut entry, 1, name.as_bytes());
    put_bytes(&mut entry, 2, &inner);
    put_bytes(out, field, &entry);
}

fn put_oneof_number(out: &mut Vec<u8>, field: u32, value: u64) {
    put_tag(out, field, WireType::Varint);
    put_varint(out, value);
}

fn put_text(out: &mut Vec<u8>, field: u32, text: &str) {
    if !text.is_empty() {
        put_bytes(out, field, text.as_bytes());
    }
}

pub(super) fn decode_response(message: ModelInferResponse) -> Result<InferResponse> {
    let has_raw = !message.raw_output_contents.is_empty();
    if has_raw && message.raw_output_contents.len() < message.outputs.len() {
        return Err(Error::protocol(format!(
            "the response of model '{}' has {} outputs, but the bytes of {}",
            message.model_name,
            message.outputs.len(),
            message.raw_output_contents.len()
        )));
    }
    let mut raw = message.raw_output_contents.into_iter();
    let outputs = message.outputs.into_iter().map(|output| {
        let data = match output.contents {
            Some(contents) if !has_raw => typed_parameter(&output.datatype, &contents)?,
            _ => raw.next().unwrap_or_default(),
        };
        Ok(Output {
            name: output.name,
            datatype: output.datatype,
            shape: output.shape,
            data,
            in_shared_memory: false,
        })
    });
    let outputs = outputs.collect::<Result<_>>()?;
    let parameters = message.parameters.into_iter();
    let mut response = InferResponse {
        model: message.model_name,
        version: message.model_version,
        id: message.id,
        parameters: parameters.filter_map(|(name, p)| Some((name, encode_parameter(p)?))).collect(),
        outputs,
        is_final: true,
    };
    response.take_final_flag();
    Ok(response)
}

fn encode_parameter(parameter: InferParameter) -> Option<Parameter> {
    Some(match parameter.parameter_choice? {
        ParameterChoice::BoolParam(value) => Parameter::Bool(value),
        ParameterChoice::Int64Param(value) => Parameter::Int(value),
        ParameterChoice::StringParam(value) => Parameter::String(value),
        ParameterChoice::DoubleParam(value) => Parameter::Double(value),
        ParameterChoice::Uint64Param(value) => Parameter::Uint(value),
    })
}

/// Contents as typed fields, which servers other than Triton's kind send.
fn typed_parameter(datatype: &str, contents: &InferTensorContents) -> Result<Bytes> {
    fn bytes<T, const N: usize>(values: &[T], to: impl Fn(&T) -> [u8; N]) -> Bytes {
        values.iter().flat_map(to).collect::<Vec<u8>>().into()
    }
    let c = contents;
    Ok(match datatype {
        "BOOL" => bytes(&c.bool_contents, |v| [u8::from(*v)]),
        "INT8" => bytes(&c.int_contents, |v| (*v as i8).to_le_bytes()),
        "INT16" => bytes(&c.int_contents, |v| (*v as i16).to_le_bytes()),
        "INT32" => bytes(&c.int_contents, |v| v.to_le_bytes()),
        "INT64" => bytes(&c.int64_contents, |v| v.to_le_bytes()),
        "UINT8" => bytes(&c.uint_contents, |v| [*v as u8]),
        "UINT16" => bytes(&c.uint_contents, |v| (*v as u16).to_le_bytes()),
        "UINT32" => bytes(&c.uint_contents, |v| v.to_le_bytes()),
        "UINT64" => bytes(&c.uint64_contents, |v| v.to_le_bytes()),
        "FP32" => bytes(&c.fp32_contents, |v| v.to_le_bytes()),
        "FP64" => bytes(&c.fp64_contents, |v| v.to_le_bytes()),
        "BYTES" => crate::tensor::encode_strings(&c.bytes_contents),
        _ => {
            return Err(Error::protocol(format!(
                "typed contents cannot hold the datatype {datatype}"
            )));
        }
    })
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
