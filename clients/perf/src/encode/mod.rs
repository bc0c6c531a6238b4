//! Requests as bytes: encoded once before the load starts. Requests of sequences have places that
//! are patched for each request.

mod http;
mod v1;
mod v2;

use crate::data::{InputStreams, Item};
pub use crate::engine::MessageKind;
use crate::engine::SequenceStep;
use crate::model::MeasuredModel;
use crate::settings::{Generation, Protocol};

/// Digits of a correlation id in text, padded with blanks.
const ID_DIGITS: usize = 10;
/// Bytes of a correlation id as a varint: ids are chosen so that all have this length.
const ID_BYTES: usize = 4;
/// The ids that have this length.
pub const IDS: std::ops::Range<u32> = 1 << 21..1 << 28;

/// A place in a prepared request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SequenceField {
    IdText,
    IdVarint,
    /// `true ` or `false`.
    StartText,
    EndText,
    StartByte,
    EndByte,
    /// Bit 0 starts, bit 1 ends a sequence.
    FlagsText,
    FlagsByte,
}

/// A prepared request.
#[derive(Debug)]
pub struct EncodedMessage {
    pub bytes: Vec<u8>,
    /// Places to be patched, all before `head`.
    fields: Vec<(usize, SequenceField)>,
    head: usize,
}

impl EncodedMessage {
    /// Writes the part of the request that holds all patched places; nothing if there are none.
    pub fn patched_head(&self, step: Option<SequenceStep>, out: &mut Vec<u8>) {
        out.clear();
        if step.is_some() && !self.fields.is_empty() {
            out.extend_from_slice(&self.bytes[..self.head]);
            self.patch(step, 0, out);
        }
    }

    /// Patches `part`, which begins at `offset` of the request.
    pub fn patch(&self, step: Option<SequenceStep>, offset: usize, part: &mut [u8]) {
        let Some(step) = step else { return };
        if offset >= self.head {
            return;
        }
        for (place, field) in &self.fields {
            let mut value = [0; ID_DIGITS];
            let length = write_field(*field, step, &mut value);
            for (index, byte) in value[..length].iter().enumerate() {
                let at = (place + index).checked_sub(offset);
                if let Some(slot) = at.and_then(|at| part.get_mut(at)) {
                    *slot = *byte;
                }
            }
        }
    }
}

/// Writes a field's bytes; returns their number.
fn write_field(field: SequenceField, step: SequenceStep, out: &mut [u8; ID_DIGITS]) -> usize {
    let text = |out: &mut [u8; ID_DIGITS], text: &str| {
        out[..text.len()].copy_from_slice(text.as_bytes());
        text.len()
    };
    let boolean = |set: bool| if set { "true " } else { "false" };
    let flags = u8::from(step.start) | u8::from(step.end) << 1;
    let byte = |out: &mut [u8; ID_DIGITS], byte: u8| {
        out[0] = byte;
        1
    };
    match field {
        SequenceField::IdText => {
            let mut value = step.id;
            for digit in out.iter_mut().rev() {
                *digit = if value > 0 { b'0' + (value % 10) as u8 } else { b' ' };
                value /= 10;
            }
            ID_DIGITS
        }
        SequenceField::IdVarint => {
            for (index, byte) in out[..ID_BYTES].iter_mut().enumerate() {
                let more = if index + 1 < ID_BYTES { 0x80 } else { 0 };
                *byte = (step.id >> (7 * index)) as u8 & 0x7f | more;
            }
            ID_BYTES
        }
        SequenceField::StartText => text(out, boolean(step.start)),
        SequenceField::EndText => text(out, boolean(step.end)),
        SequenceField::StartByte => byte(out, step.start.into()),
        SequenceField::EndByte => byte(out, step.end.into()),
        SequenceField::FlagsText => byte(out, b'0' + flags),
        SequenceField::FlagsByte => byte(out, flags),
    }
}

/// The gRPC method that takes the requests.
#[derive(Debug)]
pub struct CallTemplate {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub kind: MessageKind,
    pub streaming: bool,
}

/// All requests of a run.
#[derive(Debug)]
pub struct PreparedRequests {
    /// By data stream and step.
    pub streams: Vec<Vec<EncodedMessage>>,
    /// `None` over HTTP.
    pub call: Option<CallTemplate>,
}

/// A slice of a registered shared-memory region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    pub name: String,
    pub offset: u64,
    pub byte_size: u64,
}

/// One input of a request.
#[derive(Clone, Debug)]
pub struct TensorPayload {
    /// Shape of one batch item.
    pub shape: Vec<i64>,
    /// Bytes of the whole batch.
    pub bytes: Vec<u8>,
    pub region: Option<RegionSlice>,
}

/// The tensors of one request.
#[derive(Clone, Debug)]
pub struct BatchTensors {
    pub inputs: Vec<TensorPayload>,
    /// Where outputs go; empty without shared memory.
    pub outputs: Vec<RegionSlice>,
}

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
pub struct EncodeTarget<'t> {
    pub generation: Generation,
    pub protocol: Protocol,
    pub authority: &'t str,
    pub headers: &'t [(String, String)],
    pub streaming: bool,
    pub sequences: bool,
    pub batch: usize,
}

/// Joins the data of `batch` items into one request each. Steps of a sequence stay apart.
///
/// # Errors
/// Items of one batch have different shapes.
pub fn join_batches(
    model: &MeasuredModel,
    data: &InputStreams,
    batch: usize,
) -> Result<Vec<Vec<BatchTensors>>, String> {
    data.streams
        .iter()
        .map(|items| {
            let count = (items.len() / batch).max(1);
            (0..count).map(|index| joined(model, items, index * batch, batch)).collect()
        })
        .collect()
}

fn joined(
    model: &MeasuredModel,
    items: &[Item],
    first: usize,
    batch: usize,
) -> Result<BatchTensors, String> {
    let mut inputs = Vec::with_capacity(model.inputs.len());
    for (index, input) in model.inputs.iter().enumerate() {
        let shape = items[first % items.len()][index].shape.clone();
        let mut bytes = Vec::new();
        for item in 0..batch {
            let tensor = &items[(first + item) % items.len()][index];
            if tensor.shape != shape {
                return Err(format!(
                    "input '{}': the items of a batch have the shapes {shape:?} and {:?}",
                    input.name, tensor.shape
                ));
            }
            bytes.extend_from_slice(&tensor.bytes);
        }
        inputs.push(TensorPayload { shape, bytes, region: None });
    }
    Ok(BatchTensors { inputs, outputs: Vec::new() })
}

/// Encodes all requests.
pub fn prepare_requests(
    model: &MeasuredModel,
    streams: &[Vec<BatchTensors>],
    target: &EncodeTarget<'_>,
) -> PreparedRequests {
    let encode = |tensors: &BatchTensors| match (target.generation, target.protocol) {
        (Generation::V1, Protocol::Http) => v1::encode_http(model, tensors, target),
        (Generation::V1, Protocol::Grpc) => v1::encode_grpc(model, tensors, target),
        (Generation::V2, Protocol::Http) => v2::encode_http(model, tensors, target),
        (Generation::V2, Protocol::Grpc) => v2::encode_grpc(model, tensors, target),
    };
    let streams = streams.iter().map(|steps| steps.iter().map(encode).collect()).collect();
    let call = (target.protocol == Protocol::Grpc).then(|| {
        let (path, kind) = match (target.generation, target.streaming) {
            (Generation::V1, false) => {
                ("/nvidia.inferenceserver.GRPCService/Infer", MessageKind::V1)
            }
            (Generation::V1, true) => {
                ("/nvidia.inferenceserver.GRPCService/StreamInfer", MessageKind::V1)
            }
            (Generation::V2, false) => {
                ("/inference.GRPCInferenceService/ModelInfer", MessageKind::V2)
            }
            (Generation::V2, true) => {
                ("/inference.GRPCInferenceService/ModelStreamInfer", MessageKind::V2Stream)
            }
        };
        let lower = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
        let headers = target.headers.iter().map(lower).collect();
        CallTemplate { path: path.to_owned(), headers, kind, streaming: target.streaming }
    });
    PreparedRequests { streams, call }
}

/// A gRPC message: length prefix, the encoded head, the raw tensors under `field`.
fn grpc_message(
    head: &[u8],
    fields: Vec<(usize, SequenceField)>,
    field: u8,
    tensors: &BatchTensors,
) -> EncodedMessage {
    const PREFIX: usize = 5;
    let mut bytes = vec![0; PREFIX];
    bytes.extend_from_slice(head);
    let end = bytes.len();
    for input in tensors.inputs.iter().filter(|input| input.region.is_none()) {
        bytes.push(field << 3 | 2);
        varint(input.bytes.len() as u64, &mut bytes);
        bytes.extend_from_slice(&input.bytes);
    }
    let length = (bytes.len() - PREFIX) as u32;
    bytes[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    let fields = fields.into_iter().map(|(at, field)| (at + PREFIX, field)).collect();
    EncodedMessage { bytes, fields, head: end }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
