//! UBJSON, the binary form of JSON that XGBoost writes, for serde: only its types, and big-endian.
//!
//! Lengths are compared with the file before anything is read by them.

use crate::contents::{MAX_DEPTH, too_deep, trailing, truncated};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt::{self, Display};

/// Why a file cannot be read.
#[derive(Debug)]
pub enum UbjFault {
    Truncated,
    /// At this byte is not a type.
    Marker(usize),
    /// At this byte.
    Length(usize),
    Depth,
    /// The value ends at this byte, and the file goes on.
    Trailing(usize),
    /// A value of another type than expected, or a missing one.
    Value(String),
}

impl UbjFault {
    pub fn explain(self, bytes: &[u8]) -> String {
        match self {
            UbjFault::Truncated => truncated(bytes),
            UbjFault::Marker(at) => format!(
                "the file is not UBJSON: byte {at} is {} where a type was expected",
                bytes.get(at).copied().unwrap_or_default()
            ),
            UbjFault::Length(at) => format!(
                "the file is damaged: the length at byte {at} is negative or beyond the file"
            ),
            UbjFault::Depth => too_deep(),
            UbjFault::Trailing(at) => trailing(at, bytes.len()),
            UbjFault::Value(what) => format!("the file is damaged: {what}"),
        }
    }
}

impl Display for UbjFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for UbjFault {}

impl Error for UbjFault {
    fn custom<T: Display>(text: T) -> Self {
        UbjFault::Value(text.to_string())
    }
}

/// The value that is the whole file.
///
/// # Errors
/// The file is truncated, damaged, or another value.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, UbjFault> {
    let mut reader = UbjReader { bytes, at: 0, depth: 0 };
    let value = T::deserialize(&mut reader)?;
    match reader.at == bytes.len() {
        true => Ok(value),
        false => Err(UbjFault::Trailing(reader.at)),
    }
}

struct UbjReader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> UbjReader<'a> {
    fn next(&mut self) -> Result<u8, UbjFault> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    fn peek(&self) -> Result<u8, UbjFault> {
        self.bytes.get(self.at).copied().ok_or(UbjFault::Truncated)
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], UbjFault> {
        let end = self.at.checked_add(n).ok_or(UbjFault::Truncated)?;
        let part = self.bytes.get(self.at..end).ok_or(UbjFault::Truncated)?;
        self.at = end;
        Ok(part)
    }

    /// A length: an integer with its type.
    fn length(&mut self) -> Result<usize, UbjFault> {
        let at = self.at;
        let marker = self.next()?;
        let size = fixed_size(marker).filter(|_| marker != b'd' && marker != b'D');
        let digits = self.take(size.ok_or(UbjFault::Marker(at))?)?;
        usize::try_from(integer(marker, digits)).map_err(|_| UbjFault::Length(at))
    }

    fn text(&mut self) -> Result<String, UbjFault> {
        let length = self.length()?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// The value of the type `marker`, which was read from byte `at`.
    fn value<'de, V: Visitor<'de>>(
        &mut self,
        (marker, at): (u8, usize),
        visitor: V,
    ) -> Result<V::Value, UbjFault> {
        if let Some(size) = fixed_size(marker) {
            let digits = self.take(size)?;
            return match (marker, digits) {
                (b'd', [a, b, c, d]) => {
                    visitor.visit_f64(f64::from(f32::from_be_bytes([*a, *b, *c, *d])))
                }
                (b'D', _) => {
                    let bits = digits.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
                    visitor.visit_f64(f64::from_bits(bits))
                }
                _ => visitor.visit_i64(integer(marker, digits)),
            };
        }
        match marker {
            b'Z' | b'N' => visitor.visit_unit(),
            b'T' | b'F' => visitor.visit_bool(marker == b'T'),
            b'S' => {
                let text = self.text()?;
                visitor.visit_string(text)
            }
            b'{' => self.nested(|reader| {
                let value = visitor.visit_map(UbjMap(&mut *reader))?;
                reader.close(b'}')?;
                Ok(value)
            }),
            b'[' => self.nested(|reader| {
                let elements = reader.elements()?;
                let value = visitor.visit_seq(UbjElements { reader: &mut *reader, elements })?;
                match elements {
                    ElementCount::Open => reader.close(b']')?,
                    ElementCount::Counted(..) => {}
                }
                Ok(value)
            }),
            _ => Err(UbjFault::Marker(at)),
        }
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, UbjFault>,
    ) -> Result<T, UbjFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(UbjFault::Depth);
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn close(&mut self, bracket: u8) -> Result<(), UbjFault> {
        let at = self.at;
        match self.next()? == bracket {
            true => Ok(()),
            false => Err(UbjFault::Marker(at)),
        }
    }

    /// What an array says of its elements.
    fn elements(&mut self) -> Result<ElementCount, UbjFault> {
        let mut kind = None;
        if self.peek()? == b'$' {
            self.at += 1;
            let at = self.at;
            let marker = self.next()?;
            kind = Some((marker, fixed_size(marker).ok_or(UbjFault::Marker(at))?));
        }
        if self.peek()? != b'#' {
            return match kind {
                Some(_) => Err(UbjFault::Marker(self.at)),
                None => Ok(ElementCount::Open),
            };
        }
        self.at += 1;
        let at = self.at;
        let count = self.length()?;
        // An element of its own type has a byte at least.
        let bytes = count.checked_mul(kind.map_or(1, |(_, size)| size));
        let bytes = bytes.ok_or(UbjFault::Length(at))?;
        if bytes > self.bytes.len() - self.at {
            return Err(UbjFault::Truncated);
        }
        Ok(ElementCount::Counted(count, kind.map(|(marker, _)| marker)))
    }
}

impl<'de> Deserializer<'de> for &mut UbjReader<'_> {
    type Error = UbjFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, UbjFault> {
        let at = self.at;
        let marker = self.next()?;
        self.value((marker, at), visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, UbjFault> {
        match self.peek()? {
            b'Z' => {
                self.at += 1;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, UbjFault> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// An object, up to its bracket.
struct UbjMap<'r, 'a>(&'r mut UbjReader<'a>);

impl<'de> MapAccess<'de> for UbjMap<'_, '_> {
    type Error = UbjFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, UbjFault> {
        if self.0.peek()? == b'}' {
            return Ok(None);
        }
        let key = self.0.text()?;
        seed.deserialize(serde::de::value::StringDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, UbjFault> {
        seed.deserialize(&mut *self.0)
    }
}

#[derive(Clone, Copy)]
enum ElementCount {
    /// Up to a bracket.
    Open,
    /// So many, and the type of all.
    Counted(usize, Option<u8>),
}

struct UbjElements<'r, 'a> {
    reader: &'r mut UbjReader<'a>,
    elements: ElementCount,
}

impl<'de> SeqAccess<'de> for UbjElements<'_, '_> {
    type Error = UbjFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, UbjFault> {
        match &mut self.elements {
            ElementCount::Open if self.reader.peek()? == b']' => Ok(None),
            ElementCount::Open | ElementCount::Counted(1.., None) => {
                if let ElementCount::Counted(left, _) = &mut self.elements {
                    *left -= 1;
                }
                seed.deserialize(&mut *self.reader).map(Some)
            }
            ElementCount::Counted(left @ 1.., Some(marker)) => {
                *left -= 1;
                let value = UbjTyped { marker: *marker, reader: self.reader };
                seed.deserialize(value).map(Some)
            }
            ElementCount::Counted(0, _) => Ok(None),
        }
    }
}

/// An element whose type the array says.
struct UbjTyped<'r, 'a> {
    marker: u8,
    reader: &'r mut UbjReader<'a>,
}

impl<'de> Deserializer<'de> for UbjTyped<'_, '_> {
    type Error = UbjFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, UbjFault> {
        self.reader.value((self.marker, self.reader.at), visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Bytes of a number.
fn fixed_size(marker: u8) -> Option<usize> {
    Some(match marker {
        b'i' | b'U' | b'C' => 1,
        b'I' => 2,
        b'l' | b'd' => 4,
        b'L' | b'D' => 8,
        _ => return None,
    })
}

/// Signed, but for `U`.
fn integer(marker: u8, digits: &[u8]) -> i64 {
    let negative = marker != b'U' && digits.first().is_some_and(|first| *first > 0x7f);
    let start = if negative { -1 } else { 0 };
    digits.iter().fold(start, |value: i64, byte| value << 8 | i64::from(*byte))
}

#[cfg(test)]
#[path = "ubjson_tests.rs"]
mod tests;
