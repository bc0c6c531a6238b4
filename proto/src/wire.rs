//! Encoded messages: what the parser writes, and a tree read back from bytes for the printers.
//!
//! Going through the encoded form keeps one generic walk for every generated type.
use crate::schema::{Field, Kind, Message};

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
    /// Reads what our own encoder wrote. Anything else is read as far as it makes sense.
    pub fn read(message: &'static Message, mut bytes: &'a [u8]) -> Self {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            if take(message, &mut bytes, &mut values).is_none() {
                break;
            }
        }
        values.sort_by_key(|(place, _)| *place);
        Self { message, values }
    }

    /// The values of the field at a place in `message.fields`.
    pub fn of(&self, place: usize) -> &[(usize, Value<'a>)] {
        let start = self.values.partition_point(|(p, _)| *p < place);
        let end = self.values.partition_point(|(p, _)| *p <= place);
        &self.values[start..end]
    }
}

fn take<'a>(
    message: &'static Message,
    bytes: &mut &'a [u8],
    values: &mut Vec<(usize, Value<'a>)>,
) -> Option<()> {
    let tag = varint(bytes)?;
    let known = message.fields.iter().enumerate().find(|(_, f)| u64::from(f.number) == tag >> 3);
    match (tag & 7, known) {
        (2, Some((place, field))) => {
            let len = usize::try_from(varint(bytes)?).ok()?;
            let (mut body, rest) = bytes.split_at_checked(len)?;
            *bytes = rest;
            match field.kind {
                Kind::String | Kind::Bytes => values.push((place, Value::Bytes(body))),
                Kind::Message(inner) => {
                    values.push((place, Value::Message(Node::read(inner, body))));
                }
                // Numbers of a list, packed.
                _ => {
                    while !body.is_empty() {
                        values.push((place, number(field, &mut body)?));
                    }
                }
            }
        }
        (0 | 1 | 5, Some((place, field))) => values.push((place, number(field, bytes)?)),
        _ => return None,
    }
    Some(())
}

fn number<'a>(field: &Field, bytes: &mut &'a [u8]) -> Option<Value<'a>> {
    Some(match field.kind {
        Kind::Float => {
            let (head, rest) = bytes.split_first_chunk::<4>()?;
            *bytes = rest;
            Value::Float(f32::from_le_bytes(*head))
        }
        Kind::Double => {
            let (head, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Value::Double(f64::from_le_bytes(*head))
        }
        _ => Value::Varint(varint(bytes)?),
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_tag(out: &mut Vec<u8>, field: &Field) {
    let wire = match field.kind {
        Kind::Float => 5,
        Kind::Double => 1,
        Kind::String | Kind::Bytes | Kind::Message(_) => 2,
        _ => 0,
    };
    put_varint(out, u64::from(field.number) << 3 | wire);
}

/// Writes what `body` writes behind its length, which is known only afterwards.
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
