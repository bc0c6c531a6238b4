//! The fast path of ModelInfer: a hand-written parser of ordinary messages, without prost's message
//! structs.
//!
//! An ordinary message is contiguous in memory and has only these parts: model name and version,
//! request id, inputs with name, datatype and shape, requested outputs by name, and one raw tensor
//! for each input. For any other message, valid or not, the functions here return `None`. The
//! message is then decoded by prost and read by the [fallback](super::fallback), which accepts it
//! or returns the error. The fast path itself reports no errors, so error texts exist in one place.

use super::response::ResponseSpec;
use crate::UncheckedRequest;
use bytes::Bytes;
use smallvec::SmallVec;
use trtserver_models::OpenVersion;
use trtserver_proto_wire::{Fields, WireError, WireField, WireValue, read_varint};
use trtserver_request::{DType, InputTensor, Shape};

/// Messages with more inputs, outputs or raw tensors go to the fallback, which limits their number.
const MAX_PARTS: usize = 64;
/// Misaligned tensors up to this size are copied into one shared block.
const MAX_COPIED: usize = 4 << 10;
/// Alignment at which a tensor is used zero-copy.
const ALIGN: usize = 8;
/// Alignment of tensors in the shared block.
const BLOCK_ALIGN: usize = 16;

/// An ordinary ModelInferRequest, which borrows from the message.
#[derive(Default)]
pub struct FastRequest<'a> {
    pub model: &'a str,
    pub version: &'a str,
    id: &'a str,
    inputs: SmallVec<[FastInput<'a>; 4]>,
    outputs: SmallVec<[&'a str; 4]>,
    raw_tensors: SmallVec<[&'a [u8]; 4]>,
}

#[derive(Default)]
struct FastInput<'a> {
    name: &'a str,
    datatype: &'a str,
    shape: Shape,
}

/// Number and contents of a length-delimited field. All fields of ordinary messages are
/// length-delimited.
#[inline]
fn length_delimited(field: Result<WireField<'_>, WireError>) -> Option<(u32, &[u8])> {
    match field.ok()? {
        WireField { number, value: WireValue::Bytes(contents), .. } => Some((number, contents)),
        _ => None,
    }
}

impl<'a> FastRequest<'a> {
    /// Parses a message. `None` if it is not ordinary or malformed.
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let mut request = Self::default();
        for field in Fields::new(message) {
            let (number, field) = length_delimited(field)?;
            match number {
                1 => request.model = std::str::from_utf8(field).ok()?,
                2 => request.version = std::str::from_utf8(field).ok()?,
                3 => request.id = std::str::from_utf8(field).ok()?,
                5 => request.inputs.push(FastInput::parse(field)?),
                6 => request.outputs.push(output_name(field)?),
                7 => request.raw_tensors.push(field),
                _ => return None,
            }
            if request.inputs.len().max(request.outputs.len()).max(request.raw_tensors.len())
                > MAX_PARTS
            {
                return None;
            }
        }
        Some(request)
    }

    /// Looks up names in the signature of `served`. Aligned tensors are slices of `message`, from
    /// which this was parsed. `None` if a name or datatype is unknown, an output is listed twice,
    /// or the numbers of inputs and raw tensors differ.
    pub fn into_unchecked(
        self,
        served: &OpenVersion,
        message: &Bytes,
    ) -> Option<(UncheckedRequest, ResponseSpec)> {
        if self.raw_tensors.len() != self.inputs.len() {
            return None;
        }
        let mut unchecked = UncheckedRequest { id: self.id.to_owned(), ..Default::default() };
        let mut tensors = aligned_tensors(&self.raw_tensors, message);
        for input in self.inputs {
            unchecked.inputs.push(InputTensor {
                index: served.signature.input(input.name)?,
                dtype: DType::from_v2_name(input.datatype)?,
                shape: input.shape,
                data: tensors.next()?.into(),
            });
        }
        for name in self.outputs {
            unchecked.request_output(&served.signature, name, 0, None).ok()?;
        }
        let spec = ResponseSpec { id: unchecked.id.clone(), ..Default::default() };
        Some((unchecked, spec))
    }
}

impl<'a> FastInput<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let mut input = Self::default();
        for field in Fields::new(message) {
            let (number, mut field) = length_delimited(field)?;
            match number {
                1 => input.name = std::str::from_utf8(field).ok()?,
                2 => input.datatype = std::str::from_utf8(field).ok()?,
                3 => {
                    while !field.is_empty() {
                        input.shape.push(read_varint(&mut field).ok()? as i64);
                    }
                }
                _ => return None,
            }
        }
        Some(input)
    }
}

/// The name of a requested output.
fn output_name(message: &[u8]) -> Option<&str> {
    let mut name = "";
    for field in Fields::new(message) {
        match length_delimited(field)? {
            (1, field) => name = std::str::from_utf8(field).ok()?,
            _ => return None,
        }
    }
    Some(name)
}

/// The raw tensors. Small misaligned ones are copied into one block. All others are slices of
/// `message`: a large misaligned tensor is copied later, and only if its data type requires the
/// alignment.
fn aligned_tensors(raw: &[&[u8]], message: &Bytes) -> impl Iterator<Item = Bytes> {
    let is_slice = |raw: &[u8]| {
        raw.len() > MAX_COPIED || raw.is_empty() || (raw.as_ptr() as usize).is_multiple_of(ALIGN)
    };
    let block_len = raw
        .iter()
        .filter(|r| !is_slice(r))
        .fold(0usize, |at, r| at.next_multiple_of(BLOCK_ALIGN) + r.len());
    let mut block = Vec::with_capacity(block_len);
    for raw in raw.iter().filter(|r| !is_slice(r)) {
        block.resize(block.len().next_multiple_of(BLOCK_ALIGN), 0);
        block.extend_from_slice(raw);
    }
    // `split_to` instead of `slice`: the last tensor, often the only one, then takes the block
    // itself.
    let mut block = Bytes::from(block);
    raw.iter().map(move |raw| {
        if is_slice(raw) {
            return message.slice_ref(raw);
        }
        let padded = raw.len().next_multiple_of(BLOCK_ALIGN);
        if block.len() < padded {
            return std::mem::take(&mut block);
        }
        let mut tensor = block.split_to(padded);
        tensor.truncate(raw.len());
        tensor
    })
}

#[cfg(test)]
#[path = "fast_path_tests.rs"]
mod tests;
