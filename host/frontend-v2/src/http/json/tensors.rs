//! The tensors of a request whose numbers are converted on the first walk over its text, straight
//! into their memory. All others are read afterwards, from text whose syntax was checked
//! (`data.rs`).

use super::numbers;
use super::read::{JsonReader, MAX_DEPTH};
use super::value::{JsonArray, JsonValue};
use bytes::Bytes;
use smallvec::SmallVec;
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::{DType, ModelSignature};

/// Arrays of one text that are tried. Bounds the memory that failed attempts take one after
/// another.
const MAX_TRIED: usize = 8;

/// Input tensors that the first walk over the JSON has converted to bytes.
pub struct JsonTensors<'a, 's> {
    signature: &'s ModelSignature,
    /// Bytes of one tensor.
    limit: u64,
    tried: usize,
    read: SmallVec<[JsonTensor<'a>; 2]>,
}

struct JsonTensor<'a> {
    array: JsonArray<'a>,
    dtype: DType,
    elements: usize,
    data: Bytes,
}

impl<'a, 's> JsonTensors<'a, 's> {
    pub fn new(signature: &'s ModelSignature, limit: u64) -> Self {
        Self { signature, limit, tried: 0, read: SmallVec::new() }
    }

    /// The type of the input of that name.
    pub fn find_dtype(&self, input: &[u8]) -> Option<DType> {
        let index = self.signature.input(std::str::from_utf8(input).ok()?)?;
        Some(self.signature.inputs[index].dtype)
    }

    /// The type of all inputs, if they have the same.
    pub fn only_dtype(&self) -> Option<DType> {
        let (first, others) = self.signature.inputs.split_first()?;
        others.iter().all(|other| other.dtype == first.dtype).then_some(first.dtype)
    }

    /// Reads the next value as a tensor of `elements`; if not given, of as many as a flat array
    /// has. `None` if it has to be read later: the reader has then not moved. The array is `depth`
    /// deep in its text, and nested up to `levels`.
    pub fn read(
        &mut self,
        reader: &mut JsonReader<'a>,
        depth: usize,
        levels: usize,
        dtype: DType,
        elements: Option<usize>,
    ) -> Option<JsonValue<'a>> {
        let size = dtype.size()?;
        if reader.peek() != Some(b'[') || self.tried == MAX_TRIED {
            return None;
        }
        self.tried += 1;
        let text = reader.rest();
        let elements = elements.or_else(|| flat_length(text))?;
        let bytes = elements.checked_mul(size)?;
        // Every value takes at least a byte and a comma.
        if elements == 0 || elements > text.len() / 2 || bytes as u64 > self.limit {
            return None;
        }
        let tag = self.signature.owner.tag(LedgerHolder::Input);
        let mut data = AlignedBuf::unwritten(bytes, tag).ok()?;
        let length =
            numbers::read_numbers(text, levels.min(MAX_DEPTH - depth), dtype, data.as_mut())?;
        let array = JsonArray(&text[..length]);
        reader.at += length;
        self.read.push(JsonTensor { array, dtype, elements, data: data.into_bytes() });
        Some(JsonValue::Array(array))
    }

    /// The number of elements of an array that was read.
    pub fn elements(&self, array: JsonArray<'_>) -> Option<usize> {
        self.read.iter().find(|t| t.array.is(array)).map(|t| t.elements)
    }

    /// The bytes of an array that was read as this tensor.
    pub fn take(&mut self, array: JsonArray<'_>, dtype: DType, elements: usize) -> Option<Bytes> {
        let mut tensors = self.read.iter_mut();
        let tensor = tensors.find(|t| t.array.is(array))?;
        let same = (tensor.dtype, tensor.elements) == (dtype, elements);
        same.then(|| std::mem::take(&mut tensor.data))
    }
}

/// The number of values in the array at the start of `text`, if it is an array of numbers or
/// booleans that is not nested.
fn flat_length(text: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b']', text)?;
    Some(memchr::memchr_iter(b',', &text[..end]).count() + 1)
}
