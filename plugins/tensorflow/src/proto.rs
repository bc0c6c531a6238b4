//! Reading TensorFlow's protobuf messages: texts, maps, shapes, and why bytes are not such a
//! message.
//!
//! The readers borrow from the file: names are not copied, weights are skipped, and no message
//! nests without limit.

use std::fmt;
use trtserver_proto_wire::{Fields, WireError, WireValue};

/// Protobuf's own limit for a message.
pub const MAX_BYTES: u64 = i32::MAX as u64;
/// TensorFlow's limit for the number of dimensions.
const MAX_RANK: usize = 254;

/// Why bytes are not a valid message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MalformedProto {
    Wire(WireError),
    /// A text is not UTF-8. Which one.
    NotText(&'static str),
    Rank,
    /// A dimension below -1.
    Dimension(i64),
    /// A required name is absent. Which one.
    Unnamed(&'static str),
    /// Two operations of this name.
    Twice(String),
    /// Messages nested more deeply than protobuf permits.
    Nesting,
}

impl fmt::Display for MalformedProto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MalformedProto::Wire(error) => error.fmt(f),
            MalformedProto::NotText(what) => write!(f, "{what} is not UTF-8"),
            MalformedProto::Rank => write!(f, "a shape of more than {MAX_RANK} dimensions"),
            MalformedProto::Dimension(size) => write!(f, "a dimension of {size}"),
            MalformedProto::Unnamed(what) => write!(f, "{what} without a name"),
            MalformedProto::Nesting => f.write_str("messages nested too deeply"),
            MalformedProto::Twice(name) => write!(f, "two operations named '{name}'"),
        }
    }
}

impl From<WireError> for MalformedProto {
    fn from(error: WireError) -> Self {
        MalformedProto::Wire(error)
    }
}

/// Number and value of each field.
pub fn read_fields<'a>(
    message: &'a [u8],
) -> impl Iterator<Item = Result<(u32, WireValue<'a>), MalformedProto>> + use<'a> {
    Fields::new(message).map(|field| Ok(field.map(|field| (field.number, field.value))?))
}

/// `what` names the text in errors.
pub fn read_text<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, MalformedProto> {
    std::str::from_utf8(bytes).map_err(|_| MalformedProto::NotText(what))
}

/// Key and value of a map's entry whose values are messages.
pub fn read_entry<'a>(
    entry: &'a [u8],
    what: &'static str,
) -> Result<(&'a str, &'a [u8]), MalformedProto> {
    let (mut key, mut value): (_, &[u8]) = ("", &[]);
    for field in read_fields(entry) {
        match field? {
            (1, WireValue::Bytes(bytes)) => key = read_text(bytes, what)?,
            (2, WireValue::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Ok((key, value))
}

/// A `TensorShapeProto`; `None` = unknown rank, -1 = unknown dimension.
pub fn read_shape(message: &[u8]) -> Result<Option<Vec<i64>>, MalformedProto> {
    let (mut dims, mut unknown_rank) = (Vec::new(), false);
    for field in read_fields(message) {
        match field? {
            (2, WireValue::Bytes(dim)) => dims.push(read_dimension(dim)?),
            (3, WireValue::Varint(value)) => unknown_rank = value != 0,
            _ => {}
        }
        if dims.len() > MAX_RANK {
            return Err(MalformedProto::Rank);
        }
    }
    Ok(Some(dims).filter(|_| !unknown_rank))
}

fn read_dimension(message: &[u8]) -> Result<i64, MalformedProto> {
    let mut size = 0;
    for field in read_fields(message) {
        if let (1, WireValue::Varint(value)) = field? {
            size = value.cast_signed();
        }
    }
    if size < -1 { Err(MalformedProto::Dimension(size)) } else { Ok(size) }
}

/// The last enum or int32 field `wanted`; 0 if there is none.
pub fn last_number(message: &[u8], wanted: u32) -> Result<i32, MalformedProto> {
    let mut last = 0;
    for field in read_fields(message) {
        match field? {
            // As protobuf does: an int32 has 32 bits, higher ones are dropped.
            (number, WireValue::Varint(value)) if number == wanted => last = value as i32,
            _ => {}
        }
    }
    Ok(last)
}
