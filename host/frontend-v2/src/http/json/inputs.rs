//! The members of requests that hold tensors, read on the first walk over the text: `inputs` of an
//! inference request, and the members of a generate request.

use super::access::as_unsigned;
use super::read::{JsonReader, MAX_DEPTH, read_whole};
use super::tensors::JsonTensors;
use super::value::{JsonArray, JsonValue, PickedMembers};
use smallvec::SmallVec;
use std::borrow::Cow;
use trtserver_base::error::Result;
use trtserver_request::tensor::element_count;
use trtserver_request::{DType, Shape};

/// The members of an input.
pub const MEMBERS: [&str; 5] = ["name", "shape", "datatype", "data", "parameters"];
const NAME: usize = 0;
const SHAPE: usize = 1;
const DATATYPE: usize = 2;
const DATA: usize = 3;

/// Inputs that are read on the first walk. Further ones are scanned a second time.
const MAX_READ: usize = 8;

/// The inputs of a request: those read on the first walk, then the others.
#[derive(Default)]
pub struct Inputs<'a> {
    read: SmallVec<[PickedMembers<'a, 5>; 2]>,
    /// Offset of the remaining elements in the text of the array.
    others: usize,
}

impl<'a> Inputs<'a> {
    /// The [`MEMBERS`] of every input; `array` is the member `inputs`.
    pub fn each(self, array: JsonArray<'a>) -> impl Iterator<Item = Result<PickedMembers<'a, 5>>> {
        let read = self.read.into_iter().map(Ok);
        read.chain(array.picks_from(self.others.max(1), MEMBERS))
    }
}

/// Reads a whole inference request and picks its members `names`, the first of which are its
/// inputs.
///
/// # Errors
/// The errors of [`super::parse`].
pub fn pick_with_inputs<'a, const N: usize>(
    text: &'a [u8],
    names: [&str; N],
    tensors: &mut JsonTensors<'a, '_>,
) -> Result<(PickedMembers<'a, N>, Inputs<'a>)> {
    let mut inputs = Inputs::default();
    let picked = read_whole(text, |reader| {
        reader.pick_by(0, names, |reader, name, _| match (name, reader.peek()) {
            (Some(0), Some(b'[')) => inputs.read_array(reader, tensors),
            _ => reader.counted(1),
        })
    })?;
    Ok((picked, inputs))
}

impl<'a> Inputs<'a> {
    fn read_array(
        &mut self,
        reader: &mut JsonReader<'a>,
        tensors: &mut JsonTensors<'a, '_>,
    ) -> Result<JsonValue<'a>> {
        let start = reader.at;
        let array = reader.array(1, |reader| {
            if self.read.len() == MAX_READ {
                return reader.skip(2);
            }
            self.read.push(reader.pick_by(2, MEMBERS, |reader, name, picked| {
                let tensor = (name == Some(DATA)).then(|| data(reader, picked, tensors));
                tensor.flatten().map_or_else(|| reader.counted(3), Ok)
            })?);
            self.others = reader.at - start;
            Ok(())
        })?;
        Ok(JsonValue::Array(array))
    }
}

/// Reads the next value as the tensor that the members before it announce. Some clients sort the
/// members of an object, so that the data is the first.
fn data<'a>(
    reader: &mut JsonReader<'a>,
    before: &PickedMembers<'a, 5>,
    tensors: &mut JsonTensors<'a, '_>,
) -> Option<JsonValue<'a>> {
    let dtype = match (&before[DATATYPE], &before[NAME]) {
        (Some(JsonValue::String(name)), _) => DType::from_v2_name(std::str::from_utf8(name).ok()?),
        (Some(_), _) => None,
        (None, Some(JsonValue::String(name))) => tensors.find_dtype(name),
        (None, _) => tensors.only_dtype(),
    };
    let elements = match &before[SHAPE] {
        None => None,
        Some(JsonValue::Array(dims)) => {
            let dims = dims.elements().map(|d| i64::try_from(as_unsigned(&d.ok()?)?).ok());
            Some(element_count(&dims.collect::<Option<Shape>>()?)?)
        }
        Some(_) => return None,
    };
    tensors.read(reader, 3, MAX_DEPTH, dtype?, elements)
}

/// A member of an object.
pub type JsonMember<'a> = (Cow<'a, [u8]>, JsonValue<'a>);

/// Reads a whole generate request: its members, of which those named like an input are tensors;
/// `None` if it is not an object.
///
/// # Errors
/// The errors of [`super::parse`].
pub fn read_members<'a>(
    text: &'a [u8],
    tensors: &mut JsonTensors<'a, '_>,
) -> Result<Option<Vec<JsonMember<'a>>>> {
    read_whole(text, |reader| {
        if reader.peek() != Some(b'{') {
            return reader.value(0).map(|_| None);
        }
        let mut members = Vec::new();
        reader.members(0, |reader, key| {
            // A nested array does not have the shape of an input.
            let dtype = tensors.find_dtype(&key);
            let tensor = dtype.and_then(|dtype| tensors.read(reader, 1, 1, dtype, None));
            let value = tensor.map_or_else(|| reader.counted(1), Ok)?;
            members.push((key, value));
            Ok(())
        })?;
        Ok(Some(members))
    })
}

#[cfg(test)]
#[path = "inputs_tests.rs"]
mod tests;
