//! The memory that a message takes when it is decoded, estimated along the schema before anything
//! is decoded, and a limit on its number of parts.
//!
//! An empty part costs two bytes on the wire and hundreds in memory, so a message of some megabytes
//! could take gigabytes. Tensor bytes are skipped over, not read.

use crate::schema::{FieldKind, MessageSchema};
use bytes::Buf;
use prost::encoding::decode_varint;
use trtserver_proto_wire::{Tag, WireType};

/// Parts (messages inside a message, on all levels together) that a message may have. A request has
/// a few for each tensor and parameter.
pub const MAX_PARTS: usize = 1 << 16;

/// Memory of one part: its struct, or the entry of a map.
const PART_SIZE: usize = 256;
/// Memory of one string or bytes value, without the bytes.
const VALUE_SIZE: usize = 32;
/// Vectors grow to up to twice their size.
const GROWTH: usize = 2;

/// A message with more than [`MAX_PARTS`] parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyParts;

impl std::fmt::Display for TooManyParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the message has more than {MAX_PARTS} parts")
    }
}

impl std::error::Error for TooManyParts {}

/// Counts the parts of an encoded message and returns an upper bound of the memory that it takes
/// when it is decoded, without tensor bytes, which are not copied. What cannot be read is left to
/// the decoder to refuse.
///
/// # Errors
/// The message has too many parts.
pub fn check_parts(
    schema: &'static MessageSchema,
    mut encoded: impl Buf,
) -> Result<usize, TooManyParts> {
    let mut count = PartCount { parts_left: MAX_PARTS, bytes: 0 };
    match count_parts(schema, &mut encoded, 0, &mut count) {
        Some(()) => Ok(count.bytes),
        None if count.parts_left == 0 => Err(TooManyParts),
        None => Ok(count.bytes),
    }
}

struct PartCount {
    parts_left: usize,
    /// Memory of what was walked over.
    bytes: usize,
}

/// Reads the fields of one message, down to `end` remaining bytes. None = stop, nothing more to
/// learn.
fn count_parts(
    message: &MessageSchema,
    buf: &mut impl Buf,
    end: usize,
    count: &mut PartCount,
) -> Option<()> {
    while buf.remaining() > end {
        let tag = Tag::from_varint(decode_varint(buf).ok()?).ok()?;
        if tag.wire_type == WireType::StartGroup {
            skip_group(buf, end)?;
            continue;
        }
        let after = value_end(tag, buf, end)?;
        let length = buf.remaining() - after;
        let field = message.fields.iter().find(|f| f.number == tag.number);
        match field.map(|f| f.kind) {
            Some(FieldKind::Message(part)) if tag.wire_type == WireType::Bytes => {
                count.parts_left =
                    count.parts_left.checked_sub(1).filter(|n| *n > 0).or_else(|| {
                        count.parts_left = 0;
                        None
                    })?;
                count.bytes += PART_SIZE;
                count_parts(part, buf, after, count)?;
                continue;
            }
            Some(FieldKind::String) => count.bytes += GROWTH * VALUE_SIZE + length,
            Some(FieldKind::Bytes) => count.bytes += GROWTH * VALUE_SIZE,
            Some(FieldKind::Double | FieldKind::Float) if tag.wire_type == WireType::Bytes => {
                count.bytes += GROWTH * length;
            }
            // The varints of a packed list, each in at most eight bytes.
            Some(_) if tag.wire_type == WireType::Bytes => {
                count.bytes += GROWTH * 8 * take_varints(buf, after);
            }
            Some(_) => count.bytes += GROWTH * 8,
            None => {}
        }
        buf.advance(buf.remaining() - after);
    }
    Some(())
}

/// Counts the varints down to `end` remaining bytes.
fn take_varints(buf: &mut impl Buf, end: usize) -> usize {
    let mut count = 0;
    while buf.remaining() > end {
        let chunk = buf.chunk();
        let length = chunk.len().min(buf.remaining() - end);
        count += chunk[..length].iter().filter(|byte| **byte < 0x80).count();
        buf.advance(length);
    }
    count
}

/// The bytes that remain behind the value of `tag`: at least `end`. None: the value is truncated,
/// or no value.
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

/// Skips the rest of a group and the groups inside it. Our messages have none, but prost accepts
/// groups as unknown fields, so fields behind one count, too.
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
