//! Encodes ModelInferResponse, for unary calls and streams alike: the head without a message
//! struct, the tensors zero-copy.

use crate::{classes, parameters};
use bytes::Bytes;
use prost::Message;
use prost::encoding::{
    self, WireType, encode_key, encode_varint, encoded_len_varint, int64, key_len,
};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use trtserver_base::error::Result;
use trtserver_models::OpenVersion;
use trtserver_proto::codec::Encoded;
use trtserver_proto::v2::{InferParameter, ModelInferResponse, infer_parameter::ParameterChoice};
use trtserver_request::{InferResponse, OutputTensor};
use trtserver_wire::decode_workers::MAX_INLINE;

/// `ModelInferResponse.outputs`.
const OUTPUTS: u32 = 5;
/// `ModelInferResponse.raw_output_contents`.
pub const RAW_OUTPUTS: u32 = 6;
/// `ModelStreamInferResponse.error_message` and `.infer_response`.
const STREAM_ERROR: u32 = 1;
const STREAM_RESPONSE: u32 = 2;

/// What the response needs of the request.
#[derive(Default)]
pub struct ResponseSpec {
    pub id: String,
    /// Outputs requested as classes, and how many.
    pub classes: SmallVec<[(String, u32); 2]>,
}

impl ResponseSpec {
    /// Ranking the response takes long.
    pub fn is_heavy(&self, response: &InferResponse) -> bool {
        !self.classes.is_empty()
            && response.outputs.iter().map(|o| o.data.payload().len()).sum::<usize>() > MAX_INLINE
    }

    /// Replaces the outputs that were requested as classes.
    pub fn rank(&self, served: &OpenVersion, response: &mut InferResponse) -> Result<()> {
        for output in &mut response.outputs {
            if let Some((_, k)) = self.classes.iter().find(|(name, _)| **name == *output.name) {
                *output = classes::classify_output(&served.signature, output, *k)?;
            }
        }
        Ok(())
    }
}

/// A ModelInferResponse without its tensors. The order of fields is free in protobuf, so they may
/// follow it.
pub struct ResponseHead<'a> {
    texts: [(u32, &'a str); 3],
    /// Nothing but parameters.
    parameters: ModelInferResponse,
    outputs: &'a [OutputTensor],
}

impl<'a> ResponseHead<'a> {
    /// A head without parameters and outputs.
    pub fn new(model: &'a str, version: &'a str, id: &'a str) -> Self {
        let parameters = ModelInferResponse::default();
        Self { texts: [(1, model), (2, version), (3, id)], parameters, outputs: &[] }
    }

    /// The head of a response.
    pub fn from_response(
        served: &'a OpenVersion,
        spec: &'a ResponseSpec,
        response: &'a InferResponse,
    ) -> Self {
        let parameters: BTreeMap<_, _> =
            response.parameters.iter().map(|(k, v)| (k.clone(), parameters::to_grpc(v))).collect();
        Self {
            parameters: ModelInferResponse { parameters, ..Default::default() },
            outputs: &response.outputs,
            ..Self::new(&served.name, &served.version_text, &spec.id)
        }
    }

    /// Says on a stream whether this response is the last of its request.
    pub fn mark_final(mut self, last: bool) -> Self {
        let value = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(last)) };
        self.parameters.parameters.insert("triton_final_response".to_owned(), value);
        self
    }

    pub fn len(&self) -> usize {
        let outputs: usize = self.outputs.iter().map(|o| field_len(OUTPUTS, output_len(o))).sum();
        texts_len(&self.texts) + self.parameters.encoded_len() + outputs
    }

    pub fn encode(&self, to: &mut Vec<u8>) {
        put_texts(&self.texts, to);
        self.parameters.encode_raw(to);
        for output in self.outputs {
            put_key(OUTPUTS, output_len(output), to);
            put_texts(&output_texts(output), to);
            int64::encode_packed(3, &output.shape, to);
        }
    }

    /// The ModelStreamInferResponse with this response, and an in-band error if `error` is not
    /// empty.
    pub fn into_stream_response(self, error: &str) -> Encoded {
        let payloads: Vec<Bytes> = self.outputs.iter().map(|o| o.data.payload().clone()).collect();
        let raw = encoding::bytes::encoded_len_repeated(RAW_OUTPUTS, &payloads);
        let head_len = self.len();
        let error = [(STREAM_ERROR, error)];
        let len = texts_len(&error) + field_len(STREAM_RESPONSE, head_len + raw) - raw;
        let mut head = Vec::with_capacity(len);
        put_texts(&error, &mut head);
        put_key(STREAM_RESPONSE, head_len + raw, &mut head);
        self.encode(&mut head);
        Encoded { head, field: RAW_OUTPUTS, payloads, counted: None }
    }
}

/// The length of an InferOutputTensor.
fn output_len(output: &OutputTensor) -> usize {
    texts_len(&output_texts(output)) + int64::encoded_len_packed(3, &output.shape)
}

fn output_texts(output: &OutputTensor) -> [(u32, &str); 2] {
    [(1, &*output.name), (2, output.dtype.v2_name())]
}

/// String fields; an empty one is not written.
fn put_texts(texts: &[(u32, &str)], to: &mut Vec<u8>) {
    for (field, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        put_key(*field, text.len(), to);
        to.extend_from_slice(text.as_bytes());
    }
}

/// Key and length of a field of `len` bytes.
fn put_key(field: u32, len: usize, to: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, to);
    encode_varint(len as u64, to);
}

fn texts_len(texts: &[(u32, &str)]) -> usize {
    let written = texts.iter().filter(|(_, text)| !text.is_empty());
    written.map(|(field, text)| field_len(*field, text.len())).sum()
}

/// The size of a field of `len` bytes with its key and length.
fn field_len(field: u32, len: usize) -> usize {
    key_len(field) + encoded_len_varint(len as u64) + len
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
