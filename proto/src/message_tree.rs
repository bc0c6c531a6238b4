//! Encoded messages: what the text and JSON parsers write, and a tree read back from bytes for the
//! printers.
//!
//! Going through the encoded form keeps one generic walk for every generated type.

use crate::schema::{FieldKind, FieldSchema, MessageSchema};
use trtserver_proto_wire::{self as wire, Fields, WireType, put_varint, read_varint};

/// One value of a field; lists are several values of the same field.
pub(crate) enum EncodedValue<'a> {
    /// Integers as sign-extended varints, and bools and enums.
    Varint(u64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
    Message(EncodedNode<'a>),
}

/// The fields of a message that are set, by number, values of one field in their order.
pub(crate) struct EncodedNode<'a> {
    pub message: &'static MessageSchema,
    pub values: Vec<(usize, EncodedValue<'a>)>,
}

impl<'a> EncodedNode<'a> {
    /// Reads what our own encoder wrote. Stops at malformed input and skips unknown fields.
    pub fn read(message: &'static MessageSchema, bytes: &'a [u8]) -> Self {
        let mut values = Vec::new();
        for encoded in Fields::new(bytes).map_while(Result::ok) {
            let mut fields = message.fields.iter();
            let Some(index) = fields.position(|f| f.number == encoded.number) else { continue };
            push(message.fields[index].kind, encoded.value, &mut |value| {
                values.push((index, value))
            });
        }
        values.sort_by_key(|(index, _)| *index);
        Self { message, values }
    }

    /// The values of `message.fields[index]`.
    pub fn field_values(&self, index: usize) -> &[(usize, EncodedValue<'a>)] {
        let start = self.values.partition_point(|(i, _)| *i < index);
        let end = self.values.partition_point(|(i, _)| *i <= index);
        &self.values[start..end]
    }
}

fn push<'a>(
    kind: FieldKind,
    encoded: wire::WireValue<'a>,
    push: &mut impl FnMut(EncodedValue<'a>),
) {
    match (kind, encoded) {
        (FieldKind::String | FieldKind::Bytes, wire::WireValue::Bytes(bytes)) => {
            push(EncodedValue::Bytes(bytes))
        }
        (FieldKind::Message(message), wire::WireValue::Bytes(bytes)) => {
            push(EncodedValue::Message(EncodedNode::read(message, bytes)));
        }
        (FieldKind::Float, wire::WireValue::Fixed32(bits)) => {
            push(EncodedValue::Float(f32::from_bits(bits)))
        }
        (FieldKind::Double, wire::WireValue::Fixed64(bits)) => {
            push(EncodedValue::Double(f64::from_bits(bits)))
        }
        // Packed numbers of a list.
        (FieldKind::Float, wire::WireValue::Bytes(packed)) => {
            let (values, _) = packed.as_chunks();
            values.iter().for_each(|bytes| push(EncodedValue::Float(f32::from_le_bytes(*bytes))));
        }
        (FieldKind::Double, wire::WireValue::Bytes(packed)) => {
            let (values, _) = packed.as_chunks();
            values.iter().for_each(|bytes| push(EncodedValue::Double(f64::from_le_bytes(*bytes))));
        }
        (_, wire::WireValue::Bytes(mut packed)) => {
            while let Ok(value) = read_varint(&mut packed) {
                push(EncodedValue::Varint(value));
            }
        }
        (_, wire::WireValue::Varint(value)) => push(EncodedValue::Varint(value)),
        _ => {}
    }
}

pub(crate) fn put_tag(out: &mut Vec<u8>, field: &FieldSchema) {
    let wire_type = match field.kind {
        FieldKind::Float => WireType::Fixed32,
        FieldKind::Double => WireType::Fixed64,
        FieldKind::String | FieldKind::Bytes | FieldKind::Message(_) => WireType::Bytes,
        _ => WireType::Varint,
    };
    wire::put_tag(out, field.number, wire_type);
}

/// Writes what `body` writes, preceded by its length, which is known only afterwards.
pub(crate) fn put_sized<E>(
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let at = out.len();
    out.push(0);
    body(out)?;
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = len as u8;
    } else {
        let mut head = Vec::with_capacity(10);
        put_varint(&mut head, len as u64);
        out.splice(at..=at, head);
    }
    Ok(())
}
