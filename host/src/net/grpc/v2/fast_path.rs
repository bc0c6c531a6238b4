//! The fast path of ModelInfer: a hand-written parser of ordinary messages, which have names, types, shapes and raw tensors
//! and are contiguous in memory.
//!
//! Returns `None` for anything else, valid or not: the message then goes through [`fallback`](super::fallback).

use super::response::ResponseSpec;
use crate::net::v2::UncheckedRequest;
use crate::repository::Served;
use crate::request::{DType, InputTensor, Shape};
use bytes::Bytes;
use smallvec::SmallVec;
use trtserver_proto_wire::{Error, Field, Fields, Value, read_varint};

/// More inputs, outputs or tensors are left to the fallback, which limits the parts of a message.
const MANY: usize = 64;
/// Misaligned tensors up to this size are copied into one shared block.
const SMALL: usize = 4 << 10;
/// Tensors start at multiples of this.
const ALIGN: usize = 8;
const STEP: usize = 16;

/// A ModelInferRequest that borrows from the message.
#[derive(Default)]
pub struct FastRequest<'a> {
    pub model: &'a str,
    pub version: &'a str,
    id: &'a str,
    inputs: SmallVec<[Input<'a>; 4]>,
    outputs: SmallVec<[&'a str; 4]>,
    raw: SmallVec<[&'a [u8]; 4]>,
}

#[derive(Default)]
struct Input<'a> {
    name: &'a str,
    datatype: &'a str,
    shape: Shape,
}

/// The number and contents of a field that has a length, as all fields of ordinary requests have.
#[inline]
fn bytes_field(field: Result<Field<'_>, Error>) -> Option<(u32, &[u8])> {
    match field.ok()? {
        Field { number, value: Value::Bytes(contents), .. } => Some((number, contents)),
        _ => None,
    }
}

impl<'a> FastRequest<'a> {
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let mut request = Self::default();
        for field in Fields::new(message) {
            let (number, field) = bytes_field(field)?;
            match number {
                1 => request.model = std::str::from_utf8(field).ok()?,
                2 => request.version = std::str::from_utf8(field).ok()?,
                3 => request.id = std::str::from_utf8(field).ok()?,
                5 => request.inputs.push(Input::parse(field)?),
                6 => request.outputs.push(output(field)?),
                7 => request.raw.push(field),
                _ => return None,
            }
            if request.inputs.len().max(request.outputs.len()).max(request.raw.len()) > MANY {
                return None;
            }
        }
        Some(request)
    }

    /// The request for the model that `served` serves. Aligned tensors stay in `message`.
    pub fn into_unchecked(
        self,
        served: &Served,
        message: &Bytes,
    ) -> Option<(UncheckedRequest, ResponseSpec)> {
        if self.raw.len() != self.inputs.len() {
            return None;
        }
        let mut unchecked = UncheckedRequest { id: self.id.to_owned(), ..Default::default() };
        let mut tensors = aligned(&self.raw, message);
        for input in self.inputs {
            unchecked.inputs.push(InputTensor {
                index: served.signature.input(input.name)?,
                dtype: DType::from_v2_name(input.datatype)?,
                shape: input.shape,
                data: tensors.next()?,
            });
        }
        for name in self.outputs {
            unchecked.request_output(&served.signature, name, 0).ok()?;
        }
        let spec = ResponseSpec { id: unchecked.id.clone(), ..Default::default() };
        Some((unchecked, spec))
    }
}

impl<'a> Input<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let mut input = Self::default();
        for field in Fields::new(message) {
            let (number, mut field) = bytes_field(field)?;
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
fn output(message: &[u8]) -> Option<&str> {
    let mut name = "";
    for field in Fields::new(message) {
        match bytes_field(field)? {
            (1, field) => name = std::str::from_utf8(field).ok()?,
            _ => return None,
        }
    }
    Some(name)
}

/// The tensors, zero-copy if they start at a multiple of [`ALIGN`]. Misaligned small ones are copied into one block;
/// misaligned large ones are aligned later, where it is required.
fn aligned(raw: &[&[u8]], message: &Bytes) -> impl Iterator<Item = Bytes> {
    let stays = |raw: &[u8]| {
        raw.len() > SMALL || raw.is_empty() || (raw.as_ptr() as usize).is_multiple_of(ALIGN)
    };
    let len =
        raw.iter().filter(|r| !stays(r)).fold(0usize, |at, r| at.next_multiple_of(STEP) + r.len());
    let mut block = Vec::with_capacity(len);
    for raw in raw.iter().filter(|r| !stays(r)) {
        block.resize(block.len().next_multiple_of(STEP), 0);
        block.extend_from_slice(raw);
    }
    // `split_to` instead of `slice`: the last tensor, often the only one, then takes the block itself.
    let mut block = Bytes::from(block);
    raw.iter().map(move |raw| {
        if stays(raw) {
            return message.slice_ref(raw);
        }
        let rest = raw.len().next_multiple_of(STEP);
        if block.len() < rest {
            return std::mem::take(&mut block);
        }
        let mut tensor = block.split_to(rest);
        tensor.truncate(raw.len());
        tensor
    })
}

#[cfg(test)]
#[path = "fast_path_tests.rs"]
mod tests;
