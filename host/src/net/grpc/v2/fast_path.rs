//! Ordinary requests without a detour: names, types, shapes and raw tensors, in a message that lies in one piece.
//!
//! Whatever else a request may hold, and whatever may be wrong with one, is none of this file's business: it then
//! says `None`, and the way of all requests begins anew.

use super::message::ResponseSpec;
use crate::net::v2::UncheckedRequest;
use crate::repository::Served;
use crate::request::{DType, InputTensor, Shape};
use bytes::Bytes;
use prost::encoding::decode_varint;
use smallvec::SmallVec;

/// Inputs, outputs and tensors beyond this number are for those who guard against too many.
const MANY: usize = 64;
/// What must be copied to lie straight and is not longer than this is copied together.
const SMALL: usize = 4 << 10;
/// Tensors start at multiples of this.
const ALIGN: usize = 8;
const STEP: usize = 16;

/// A ModelInferRequest, in words of the message itself.
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

/// Fields of a message that all have a length.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The next field's number and bytes; the inner `None` is the end, the outer one something unusual.
    fn next(&mut self) -> Option<Option<(u8, &'a [u8])>> {
        let Some((key, rest)) = self.0.split_first() else { return Some(None) };
        if key & 7 != 2 || *key >= 0x80 {
            return None;
        }
        self.0 = rest;
        let len = self.varint()?;
        let (field, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(Some((key >> 3, field)))
    }

    fn varint(&mut self) -> Option<u64> {
        decode_varint(&mut self.0).ok()
    }
}

impl<'a> FastRequest<'a> {
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let mut request = Self::default();
        let mut fields = Fields(message);
        while let Some((number, field)) = fields.next()? {
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

    /// The request for the model that `served` serves, whose tensors may stay in `message`.
    pub fn draft(
        self,
        served: &Served,
        message: &Bytes,
    ) -> Option<(UncheckedRequest, ResponseSpec)> {
        if self.raw.len() != self.inputs.len() {
            return None;
        }
        let mut draft = UncheckedRequest { id: self.id.to_owned(), ..Default::default() };
        let mut tensors = straight(&self.raw, message);
        for input in self.inputs {
            draft.inputs.push(InputTensor {
                index: served.signature.input(input.name)?,
                dtype: DType::from_v2_name(input.datatype)?,
                shape: input.shape,
                data: tensors.next()?,
            });
        }
        for name in self.outputs {
            draft.want(&served.signature, name, 0).ok()?;
        }
        let asked = ResponseSpec { id: draft.id.clone(), ..Default::default() };
        Some((draft, asked))
    }
}

impl<'a> Input<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let mut input = Self::default();
        let mut fields = Fields(message);
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => input.name = std::str::from_utf8(field).ok()?,
                2 => input.datatype = std::str::from_utf8(field).ok()?,
                3 => {
                    let mut packed = Fields(field);
                    while !packed.0.is_empty() {
                        input.shape.push(packed.varint()? as i64);
                    }
                }
                _ => return None,
            }
        }
        Some(input)
    }
}

/// The name of a wanted output.
fn output(message: &[u8]) -> Option<&str> {
    let mut fields = Fields(message);
    let mut name = "";
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => name = std::str::from_utf8(field).ok()?,
            _ => return None,
        }
    }
    Some(name)
}

/// The tensors, in `message` where they start at a multiple of [`ALIGN`]. Short ones that do not are copied into
/// one block; long ones are left to those who want them straight.
fn straight(raw: &[&[u8]], message: &Bytes) -> impl Iterator<Item = Bytes> {
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
    // Not sliced but taken apart: what is left for the last tensor, often the only one, is the block itself.
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
