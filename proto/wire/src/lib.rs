//! The protobuf wire format: iterates over the fields of an encoded message, and writes fields.
//!
//! For code that needs a few fields of a message without generated types. Values borrow from the
//! message, nothing is allocated, and malformed input is an error, never a panic.
#![forbid(unsafe_code)]

use std::fmt;

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The message ends within a field.
    Truncated,
    /// A varint has more than 64 bits.
    VarintOverflow,
    /// Field number 0 or above 2^29 - 1, or an unknown wire type.
    InvalidTag(u64),
    /// Groups exist in proto2 only.
    Group,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Truncated => f.write_str("truncated message"),
            WireError::VarintOverflow => f.write_str("varint of more than 64 bits"),
            WireError::InvalidTag(tag) => write!(f, "invalid tag {tag:#x}"),
            WireError::Group => f.write_str("groups are not supported"),
        }
    }
}

impl std::error::Error for WireError {}

/// How a value is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    StartGroup = 3,
    EndGroup = 4,
    Fixed32 = 5,
}

/// Precedes each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    pub number: u32,
    pub wire_type: WireType,
}

impl Tag {
    /// # Errors
    /// [`WireError::InvalidTag`].
    #[inline]
    pub fn from_varint(tag: u64) -> Result<Self, WireError> {
        let wire_type = match tag & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Bytes,
            3 => WireType::StartGroup,
            4 => WireType::EndGroup,
            5 => WireType::Fixed32,
            _ => return Err(WireError::InvalidTag(tag)),
        };
        match u32::try_from(tag) {
            Ok(tag) if tag >= 8 => Ok(Self { number: tag >> 3, wire_type }),
            _ => Err(WireError::InvalidTag(tag)),
        }
    }
}

/// A varint whose bytes arrive one at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartialVarint {
    value: u64,
    bits: u32,
}

impl PartialVarint {
    #[inline]
    pub const fn new() -> Self {
        Self { value: 0, bits: 0 }
    }

    /// Adds a byte. Returns the number if this byte is its last one, and starts over.
    ///
    /// # Errors
    /// [`WireError::VarintOverflow`].
    #[inline]
    pub fn push(&mut self, byte: u8) -> Result<Option<u64>, WireError> {
        // The tenth byte may have one bit only.
        if self.bits == 63 && byte > 1 {
            return Err(WireError::VarintOverflow);
        }
        self.value |= u64::from(byte & 0x7f) << self.bits;
        self.bits += 7;
        Ok((byte < 0x80).then(|| std::mem::take(self).value))
    }
}

/// Reads a varint and advances `bytes` past it.
///
/// # Errors
/// [`WireError::Truncated`], [`WireError::VarintOverflow`].
#[inline]
pub fn read_varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    match bytes.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *bytes = rest;
            Ok(byte.into())
        }
        _ => read_long_varint(bytes),
    }
}

fn read_long_varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    let mut varint = PartialVarint::default();
    for (at, byte) in bytes.iter().enumerate() {
        if let Some(value) = varint.push(*byte)? {
            *bytes = &bytes[at + 1..];
            return Ok(value);
        }
    }
    Err(WireError::Truncated)
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// Bytes, text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireField<'a> {
    pub number: u32,
    pub value: WireValue<'a>,
    /// Tag and value as they are encoded.
    pub encoded: &'a [u8],
}

/// The fields of an encoded message in their order. An error is the last item.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    // Inlined for sure, so that only the parts of a field that the caller looks at are computed.
    #[inline(always)]
    fn read(&mut self) -> Result<WireField<'a>, WireError> {
        let start = self.rest;
        let tag = Tag::from_varint(read_varint(&mut self.rest)?)?;
        let value = match tag.wire_type {
            WireType::Varint => WireValue::Varint(read_varint(&mut self.rest)?),
            WireType::Fixed64 => WireValue::Fixed64(u64::from_le_bytes(self.take_array()?)),
            WireType::Fixed32 => WireValue::Fixed32(u32::from_le_bytes(self.take_array()?)),
            WireType::Bytes => {
                let len = read_varint(&mut self.rest)?;
                let len = usize::try_from(len).map_err(|_| WireError::Truncated)?;
                let (bytes, rest) = self.rest.split_at_checked(len).ok_or(WireError::Truncated)?;
                self.rest = rest;
                WireValue::Bytes(bytes)
            }
            WireType::StartGroup | WireType::EndGroup => return Err(WireError::Group),
        };
        let encoded = &start[..start.len() - self.rest.len()];
        Ok(WireField { number: tag.number, value, encoded })
    }

    #[inline]
    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    /// The contents of every bytes, text or message field `number`. Ends at malformed input.
    pub fn bytes(self, number: u32) -> impl Iterator<Item = &'a [u8]> {
        self.map_while(Result::ok).filter_map(move |field| match field.value {
            WireValue::Bytes(bytes) if field.number == number => Some(bytes),
            _ => None,
        })
    }

    /// The last text field `number`; empty if there is none.
    pub fn text(self, number: u32) -> String {
        let last = self.bytes(number).last().unwrap_or_default();
        String::from_utf8_lossy(last).into_owned()
    }

    /// The last varint field `number`; 0 if there is none.
    pub fn varint(self, number: u32) -> u64 {
        let varint = |field: WireField<'_>| match field.value {
            WireValue::Varint(value) if field.number == number => Some(value),
            _ => None,
        };
        self.map_while(Result::ok).filter_map(varint).last().unwrap_or_default()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<WireField<'a>, WireError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Appends a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a tag.
pub fn put_tag(out: &mut Vec<u8>, number: u32, wire_type: WireType) {
    put_varint(out, u64::from(number) << 3 | wire_type as u64);
}

/// Appends a bytes, text or message field.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, contents: &[u8]) {
    put_tag(out, number, WireType::Bytes);
    put_varint(out, contents.len() as u64);
    out.extend_from_slice(contents);
}

/// Appends an integer, boolean or enum field.
pub fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, WireType::Varint);
    put_varint(out, value);
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
