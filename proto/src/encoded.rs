//! Encoded messages: what the text and JSON parsers write, and a tree read back from bytes for the printers.
//!
//! Going through the encoded form keeps one generic walk for every generated type.

use crate::schema::{Field, Kind, Message};
use trtserver_proto_wire::{self as wire, Fields, WireType, put_varint, read_varint};

/// One value of a field; lists are several values of the same field.
pub(crate) enum Value<'a> {
    /// Integers as sign-extended varints, and bools and enums.
    Varint(u64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
    Message(Node<'a>),
}

/// The fields of a message that are set, by number, values of one field in their order.
pub(crate) struct Node<'a> {
    pub message: &'static Message,
    pub values: Vec<(usize, Value<'a>)>,
}

impl<'a> Node<'a> {
    /// Reads what our own encoder wrote. Stops at malformed input and skips unknown fields.
    pub fn read(message: &'static Message, bytes: &'a [u8]) -> Self {
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
    pub fn of(&self, index: usize) -> &[(usize, Value<'a>)] {
        let start = self.values.partition_point(|(i, _)| *i < index);
        let end = self.values.partition_point(|(i, _)| *i <= index);
        &self.values[start..end]
    }
}

fn push<'a>(kind: Kind, encoded: wire::Value<'a>, push: &mut impl FnMut(Value<'a>)) {
    match (kind, encoded) {
        (Kind::String | Kind::Bytes, wire::Value::Bytes(bytes)) => push(Value::Bytes(bytes)),
        (Kind::Message(message), wire::Value::Bytes(bytes)) => {
            push(Value::Message(Node::read(message, bytes)));
        }
        (Kind::Float, wire::Value::Fixed32(bits)) => push(Value::Float(f32::from_bits(bits))),
        (Kind::Double, wire::Value::Fixed64(bits)) => push(Value::Double(f64::from_bits(bits))),
        // Packed numbers of a list.
        (Kind::Float, wire::Value::Bytes(packed)) => {
            let (values, _) = packed.as_chunks();
            values.iter().for_each(|bytes| push(Value::Float(f32::from_le_bytes(*bytes))));
        }
        (Kind::Double, wire::Value::Bytes(packed)) => {
            let (values, _) = packed.as_chunks();
            values.iter().for_each(|bytes| push(Value::Double(f64::from_le_bytes(*bytes))));
        }
        (_, wire::Value::Bytes(mut packed)) => {
            while let Ok(value) = read_varint(&mut packed) {
                push(Value::Varint(value));
            }
        }
        (_, wire::Value::Varint(value)) => push(Value::Varint(value)),
        _ => {}
    }
}

pub(crate) fn put_tag(out: &mut Vec<u8>, field: &Field) {
    let wire_type = match field.kind {
        Kind::Float => WireType::Fixed32,
        Kind::Double => WireType::Fixed64,
        Kind::String | Kind::Bytes | Kind::Message(_) => WireType::Bytes,
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
