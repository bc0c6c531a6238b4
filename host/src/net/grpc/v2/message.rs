//! ModelInferRequest into a request, a response into ModelInferResponse.

use super::input::{Source, shared_memory};
use crate::error::{Error, Result};
use crate::net::grpc::body::GrpcBody;
use crate::net::grpc::unary;
use crate::net::v2::{RequestParameters, UncheckedRequest, classes, parameters};
use crate::repository::Served;
use crate::request::check::{self, IdPrefix};
use crate::request::{DType, InferResponse, InputTensor, OutputTensor};
use bytes::Bytes;
use http::HeaderMap;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, int64, key_len};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use trtserver_proto::v2::{
    InferParameter, ModelInferRequest, ModelInferResponse, infer_parameter::ParameterChoice,
    model_infer_response::InferOutputTensor,
};

/// `ModelInferResponse.outputs` and `.raw_output_contents`.
const OUTPUTS: u32 = 5;
const RAW_OUTPUTS: u32 = 6;

/// What the answer needs of the request.
#[derive(Default)]
pub struct ResponseSpec {
    pub id: String,
    /// Outputs wanted as classes, and how many.
    pub classes: SmallVec<[(String, u32); 2]>,
}

/// Reads a request for the model that `served` serves.
pub fn read(
    served: &Served,
    request: ModelInferRequest,
) -> Result<(UncheckedRequest, ResponseSpec)> {
    let signature = &served.signature;
    let mut draft = UncheckedRequest {
        id: request.id,
        parameters: RequestParameters::from_grpc(request.parameters)?,
        ..Default::default()
    };
    let mut source = Source::new(&served.name, request.raw_input_contents);
    let mut indexes = SmallVec::<[usize; 4]>::new();
    for tensor in &request.inputs {
        let Some(index) = signature.input(&tensor.name) else {
            let names: Vec<String> = request.inputs.iter().map(|t| t.name.clone()).collect();
            return Err(check::unknown_input(signature, &draft.id, &tensor.name, &names));
        };
        indexes.push(index);
    }
    for (index, mut tensor) in indexes.into_iter().zip(request.inputs) {
        let Some(dtype) = DType::from_v2_name(&tensor.datatype) else {
            return Err(Error::invalid(format!(
                "{}inference input '{}' data-type is '<invalid>', but model '{}' expects '{}'",
                IdPrefix(&draft.id),
                tensor.name,
                served.name,
                signature.inputs[index].dtype.v2_name()
            )));
        };
        let shape = SmallVec::from_vec(std::mem::take(&mut tensor.shape));
        let data = source.take(tensor, dtype)?;
        draft.inputs.push(InputTensor { index, dtype, shape, data });
    }
    let mut asked = ResponseSpec { id: draft.id.clone(), ..Default::default() };
    for output in request.outputs {
        let classes = match output.parameters.get("classification").map(|p| &p.parameter_choice) {
            None => 0,
            Some(Some(ParameterChoice::Int64Param(k))) if *k > 0 => {
                u32::try_from(*k).unwrap_or(u32::MAX)
            }
            Some(Some(ParameterChoice::Int64Param(_))) => {
                return Err(Error::invalid(
                    "invalid value for 'classification' parameter, expected >= 0",
                ));
            }
            Some(_) => {
                return Err(Error::invalid(
                    "invalid value type for 'classification' parameter, expected int64_param",
                ));
            }
        };
        if classes > 0 && output.parameters.contains_key("shared_memory_region") {
            return Err(Error::invalid(
                "output can't set both 'shared_memory_region' and 'classification'",
            ));
        }
        shared_memory(&output.name, &output.parameters)?;
        draft.want(signature, &output.name, classes)?;
        if classes > 0 {
            asked.classes.push((output.name, classes));
        }
    }
    Ok((draft, asked))
}

/// The response without its tensors, and the tensors, for those who encode it themselves.
pub fn write(
    served: &Served,
    asked: &ResponseSpec,
    response: InferResponse,
) -> Result<(ModelInferResponse, Vec<Bytes>)> {
    let parameters = parameters(&response);
    let mut outputs = Vec::with_capacity(response.outputs.len());
    let mut payloads = Vec::with_capacity(response.outputs.len());
    for mut output in response.outputs {
        if let Some((_, k)) = asked.classes.iter().find(|(name, _)| **name == *output.name) {
            output = classes::of(&served.signature, &output, *k)?;
        }
        outputs.push(InferOutputTensor {
            name: output.name.to_string(),
            datatype: output.dtype.v2_name().to_owned(),
            shape: output.shape.into_vec(),
            ..Default::default()
        });
        payloads.push(output.data);
    }
    let head = ModelInferResponse {
        model_name: served.name.to_string(),
        model_version: served.version_text.to_string(),
        id: asked.id.clone(),
        parameters,
        outputs,
        raw_output_contents: Vec::new(),
    };
    Ok((head, payloads))
}

/// The response as it goes on the wire.
pub fn respond(
    served: &Served,
    asked: &ResponseSpec,
    mut response: InferResponse,
    room: HeaderMap,
) -> Result<http::Response<GrpcBody>> {
    for output in &mut response.outputs {
        if let Some((_, k)) = asked.classes.iter().find(|(name, _)| **name == *output.name) {
            *output = classes::of(&served.signature, output, *k)?;
        }
    }
    let parameters = ModelInferResponse { parameters: parameters(&response), ..Default::default() };
    let outputs = &response.outputs;
    let names = [(1, &*served.name), (2, &*served.version_text), (3, &*asked.id)];
    let tensors: usize = outputs.iter().map(|o| part_len(OUTPUTS, output_len(o))).sum();
    let len = texts_len(&names) + parameters.encoded_len() + tensors;
    let head = |to: &mut Vec<u8>| {
        put_texts(&names, to);
        parameters.encode_raw(to);
        for output in outputs {
            encode_key(OUTPUTS, WireType::LengthDelimited, to);
            encode_varint(output_len(output) as u64, to);
            put_texts(&output_texts(output), to);
            int64::encode_packed(3, &output.shape, to);
        }
    };
    Ok(unary::respond_with(len, head, RAW_OUTPUTS, outputs.iter().map(|o| &o.data), room))
}

/// The length of an InferOutputTensor.
fn output_len(output: &OutputTensor) -> usize {
    texts_len(&output_texts(output)) + int64::encoded_len_packed(3, &output.shape)
}

fn output_texts(output: &OutputTensor) -> [(u32, &str); 2] {
    [(1, &*output.name), (2, output.dtype.v2_name())]
}

/// Fields of text; an empty one is not written.
fn put_texts(texts: &[(u32, &str)], to: &mut Vec<u8>) {
    for (field, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        encode_key(*field, WireType::LengthDelimited, to);
        encode_varint(text.len() as u64, to);
        to.extend_from_slice(text.as_bytes());
    }
}

fn texts_len(texts: &[(u32, &str)]) -> usize {
    let written = texts.iter().filter(|(_, text)| !text.is_empty());
    written.map(|(field, text)| part_len(*field, text.len())).sum()
}

/// What a field of `len` bytes takes with its key and length.
fn part_len(field: u32, len: usize) -> usize {
    key_len(field) + encoded_len_varint(len as u64) + len
}

fn parameters(response: &InferResponse) -> BTreeMap<String, InferParameter> {
    response.parameters.iter().map(|(k, v)| (k.clone(), parameters::to_grpc(v))).collect()
}

/// Says on a stream whether this response is the last of its request.
pub fn mark_final(head: &mut ModelInferResponse, last: bool) {
    let value = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(last)) };
    head.parameters.insert("triton_final_response".to_owned(), value);
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
