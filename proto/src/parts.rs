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
        if tag.wire_type == WireType::StartGroup {
            skip_group(buf, end)?;
            continue;
        }
        let after = value_end(tag, buf, end)?;
        let field = message.fields.iter().find(|f| f.number == tag.number);
        match field.map(|f| f.kind) {
            Some(Kind::Message(part)) if tag.wire_type == WireType::Bytes => {
                *left = left.checked_sub(1).filter(|n| *n > 0).or_else(|| {
                    *left = 0;
                    None
                })?;
                walk(part, buf, after, left)?;
            }
            _ => buf.advance(buf.remaining() - after),
        }
    }
    Some(())
}

/// The bytes that remain behind the value of `tag`: at least `end`. None: the value is truncated, or no value.
fn value_end(tag: Tag, buf: &mut impl Buf, end: usize) -> Option<usize> {
    let length = match tag.wire_type {
        WireType::Varint => {
            decode_varint(buf).ok()?;
            0
        }
        WireType::Fixed64 => 8,
        WireType::Bytes => usize::try_from(decode_varint(buf).ok()?).ok()?,
        WireType::Fixed32 => 4,
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    buf.remaining().checked_sub(length).filter(|after| *after >= end)
}

/// Skips the rest of a group and the groups inside it. Our messages have none, but prost accepts groups as unknown fields,
/// so fields behind one count, too.
fn skip_group(buf: &mut impl Buf, end: usize) -> Option<()> {
    let mut depth = 1_usize;
    while depth > 0 && buf.remaining() > end {
        let tag = Tag::from_varint(decode_varint(buf).ok()?).ok()?;
        match tag.wire_type {
            WireType::StartGroup => depth += 1,
            WireType::EndGroup => depth -= 1,
            _ => {
                let after = value_end(tag, buf, end)?;
                buf.advance(buf.remaining() - after);
            }
        }
    }
    (depth == 0).then_some(())
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
