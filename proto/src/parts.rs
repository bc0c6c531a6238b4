//! How many parts a message may have: a look along the schema before anything is decoded.
//!
//! An empty part costs two bytes on the wire and hundreds in memory, so a message of some megabytes
//! could take gigabytes. Tensor bytes are skipped over, not read.

use crate::schema::{Kind, Message};
use bytes::Buf;
use prost::encoding::decode_varint;
use trtserver_proto_wire::{Tag, WireType};

/// Parts (messages inside a message, on all levels together) that a message may have. A request has
/// a few for each tensor and parameter.
pub const MAX_PARTS: usize = 1 << 16;

/// A message with more than [`MAX_PARTS`] parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyParts;

impl std::fmt::Display for TooManyParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the message has more than {MAX_PARTS} parts")
    }
}

impl std::error::Error for TooManyParts {}

/// Counts the parts of an encoded message. What cannot be read is left to the decoder to refuse.
pub fn check(schema: &'static Message, mut encoded: impl Buf) -> Result<(), TooManyParts> {
    let mut left = MAX_PARTS;
    match walk(schema, &mut encoded, 0, &mut left) {
        Some(()) => Ok(()),
        None if left == 0 => Err(TooManyParts),
        None => Ok(()),
    }
}

/// Reads the fields of one message, down to `end` remaining bytes. None = stop, nothing more to learn.
fn walk(message: &Message, buf: &mut impl Buf, end: usize, left: &mut usize) -> Option<()> {
    while buf.remaining() > end {
        let tag = Tag::from_varint(decode_varint(buf).ok()?).ok()?;
        let skip = match tag.wire_type {
            WireType::Varint => {
                decode_varint(buf).ok()?;
                0
            }
            WireType::Fixed64 => 8,
            WireType::Bytes => usize::try_from(decode_varint(buf).ok()?).ok()?,
            WireType::Fixed32 => 4,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        let after = buf.remaining().checked_sub(skip).filter(|after| *after >= end)?;
        let field = message.fields.iter().find(|f| f.number == tag.number);
        match field.map(|f| f.kind) {
            Some(Kind::Message(part)) if tag.wire_type == WireType::Bytes => {
                *left = left.checked_sub(1).filter(|n| *n > 0).or_else(|| {
                    *left = 0;
                    None
                })?;
                walk(part, buf, after, left)?;
            }
            _ => buf.advance(skip),
        }
    }
    Some(())
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
