//! Tensors as bytes: element sizes, strings, classes, and the shapes that go with a number of
//! bytes.

use crate::error::{Error, Result};
use bytes::Bytes;

/// Bytes of one element of a v2 datatype; `None` for BYTES and unknown names.
#[must_use]
pub fn element_size(datatype: &str) -> Option<usize> {
    match datatype {
        "BOOL" | "UINT8" | "INT8" => Some(1),
        "UINT16" | "INT16" | "FP16" | "BF16" => Some(2),
        "UINT32" | "INT32" | "FP32" => Some(4),
        "UINT64" | "INT64" | "FP64" => Some(8),
        _ => None,
    }
}

/// Number of elements; `None` for negative dimensions and on overflow.
#[must_use]
pub fn element_count(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |count, dim| count.checked_mul(usize::try_from(*dim).ok()?))
}

/// Bytes of a tensor of a fixed-size datatype.
#[must_use]
pub fn byte_size(datatype: &str, shape: &[i64]) -> Option<usize> {
    element_count(shape)?.checked_mul(element_size(datatype)?)
}

/// Encodes strings: each is a little-endian u32 length, then its bytes.
pub fn encode_strings<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Bytes {
    let mut out = Vec::new();
    for string in strings {
        let string = string.as_ref();
        out.extend_from_slice(&(string.len() as u32).to_le_bytes());
        out.extend_from_slice(string);
    }
    out.into()
}

/// The strings of an encoded tensor.
///
/// # Errors
/// The bytes end within a string.
pub fn decode_strings(mut encoded: &[u8]) -> Result<Vec<&[u8]>> {
    let mut strings = Vec::new();
    while !encoded.is_empty() {
        let (string, rest) = next_string(encoded).ok_or_else(|| {
            Error::protocol(format!(
                "string {} is truncated: {} bytes are left",
                strings.len(),
                encoded.len()
            ))
        })?;
        strings.push(string);
        encoded = rest;
    }
    Ok(strings)
}

/// The first string, and what follows it.
pub(crate) fn next_string(encoded: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = encoded.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// One class of a classification result.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The element.
    pub value: f64,
    /// Its place in the tensor.
    pub index: i64,
    /// Empty if the model has no labels.
    pub label: String,
}

impl Class {
    /// Parses `value:index` or `value:index:label`, as v2 sends classes.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = text.splitn(3, ':');
        let value = parts.next().and_then(|value| value.parse().ok());
        let index = parts.next().and_then(|index| index.parse().ok());
        match (value, index) {
            (Some(value), Some(index)) => {
                Ok(Self { value, index, label: parts.next().unwrap_or_default().to_owned() })
            }
            _ => Err(Error::protocol(format!(
                "the class `{text}` does not have the form value:index:label"
            ))),
        }
    }
}

#[cfg(test)]
#[path = "tensor_tests.rs"]
mod tests;
