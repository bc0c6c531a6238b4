//! JSON to messages by the rules of proto3, guided by the schema; values go straight to wire bytes.
//!
//! Fields may have the names of the proto files or their camel case. Recursion follows the schema,
//! in which no message contains itself, so hostile text cannot make the stack deep.
use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::message_tree::{put_sized, put_tag};
use crate::schema::{Described, FieldKind, FieldSchema, MessageSchema};
use crate::text::nearest_name;
use trtserver_proto_wire::put_varint;

/// Why a text could not be read. Lines and columns count from 1, columns in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for JsonError {}

/// Reads a message from its JSON form. Names of enum values may be spelled in small letters, fields
/// that the message does not have are refused.
pub fn parse<M: Described>(text: &str) -> Result<M, JsonError> {
    let located = |e: serde_json::Error| {
        let (line, column, message) = (e.line(), e.column(), e.to_string());
        let place = format!(" at line {line} column {column}");
        let message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
        JsonError { line, column, message }
    };
    let mut out = Vec::with_capacity(text.len());
    let mut json = serde_json::Deserializer::from_str(text);
    let whole = MessageBody { name: "the message", message: M::schema(), out: &mut out };
    whole.deserialize(&mut json).and_then(|()| json.end()).map_err(located)?;
    M::decode(out.as_slice()).map_err(|e| JsonError { line: 1, column: 1, message: e.to_string() })
}

/// A JSON object that is the fields of a message.
struct MessageBody<'a> {
    name: &'a str,
    message: &'static MessageSchema,
    out: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for MessageBody<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MessageBody<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object for {}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0_u64;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let fields = self.message.fields.iter().enumerate();
            let mut fields = fields.filter(|(_, f)| f.name == name || camel_case(f.name) == name);
            let Some((place, field)) = fields.next() else {
                let near = nearest_name(&name, self.message.fields.iter().map(|f| f.name));
                let message = self.message.name;
                return Err(A::Error::custom(format!("{message} has no field {name}{near}")));
            };
            if seen & (1 << place) != 0 {
                return Err(A::Error::custom(format!("{name} is given twice")));
            }
            let mut others = self.message.fields.iter().enumerate();
            let other = others.find(|(p, f)| {
                field.oneof.is_some() && f.oneof == field.oneof && seen & (1 << p) != 0
            });
            if let Some((_, other)) = other {
                let other = other.name;
                return Err(A::Error::custom(format!("{name} and {other} exclude each other")));
            }
            let before = self.out.len();
            map.next_value_seed(MemberReader { field, out: self.out })?;
            // Null is nothing, and so excludes nothing.
            if self.out.len() != before {
                seen |= 1 << place;
            }
        }
        Ok(())
    }
}

/// What stands behind the name of a field: a value, a list, or a map. Null is as if it were left
/// out. As in protobuf's C++ library, a list of one element may be written as that element.
struct MemberReader<'a> {
    field: &'static FieldSchema,
    out: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for MemberReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for MemberReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.field.map(), self.field.repeated) {
            (Some(_), _) => write!(f, "an object for {}", self.field.name),
            (None, true) => write!(f, "a list for {}", self.field.name),
            (None, false) => write!(f, "a value for {}", self.field.name),
        }
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.field.repeated {
            true => json.deserialize_any(self),
            false => self.one().deserialize(json),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.field.map().is_some() {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        while list.next_element_seed(ValueReader { field: self.field, out: self.out })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.one().visit_bool(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.one().visit_i64(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.one().visit_u64(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.one().visit_f64(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.one().visit_str(text)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some([key, value]) = self.field.map().map(|entry| entry.fields) else {
            let FieldKind::Message(message) = self.field.kind else {
                return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
            };
            put_tag(self.out, self.field);
            let name = self.field.name;
            return put_sized(self.out, |out| MessageBody { name, message, out }.visit_map(map));
        };
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            put_tag(self.out, self.field);
            put_sized(self.out, |out| {
                ValueReader { field: key, out }.visit_str::<A::Error>(&name)?;
                map.next_value_seed(ValueReader { field: value, out })
            })?;
        }
        Ok(())
    }
}

impl<'a> MemberReader<'a> {
    fn one(self) -> ValueReader<'a> {
        ValueReader { field: self.field, out: self.out }
    }
}

/// One value with its tag.
struct ValueReader<'a> {
    field: &'static FieldSchema,
    out: &'a mut Vec<u8>,
}

impl ValueReader<'_> {
    fn whole<E: Error>(self, value: i128) -> Result<(), E> {
        let (least, most): (i128, i128) = match self.field.kind {
            FieldKind::Int32 | FieldKind::Enum(_) => (i32::MIN.into(), i32::MAX.into()),
            FieldKind::UInt32 => (0, u32::MAX.into()),
            FieldKind::UInt64 => (0, u64::MAX.into()),
            FieldKind::Int64 => (i64::MIN.into(), i64::MAX.into()),
            FieldKind::Float | FieldKind::Double => return self.real(value as f64),
            _ => return Err(self.wrong(&value.to_string())),
        };
        if !(least..=most).contains(&value) {
            let name = self.field.name;
            return Err(E::custom(format!("{name}: {value} is not between {least} and {most}")));
        }
        put_tag(self.out, self.field);
        put_varint(self.out, value as u64);
        Ok(())
    }

    fn real<E: Error>(self, value: f64) -> Result<(), E> {
        match self.field.kind {
            FieldKind::Float => {
                put_tag(self.out, self.field);
                self.out.extend_from_slice(&(value as f32).to_le_bytes());
                Ok(())
            }
            FieldKind::Double => {
                put_tag(self.out, self.field);
                self.out.extend_from_slice(&value.to_le_bytes());
                Ok(())
            }
            // 1.0 is the same number as 1.
            _ if value.fract() == 0.0 && value.abs() < 1e18 => self.whole(value as i128),
            _ => Err(self.wrong(&value.to_string())),
        }
    }

    fn bytes(self, bytes: &[u8]) {
        put_tag(self.out, self.field);
        put_varint(self.out, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    fn wrong<E: Error>(&self, found: &str) -> E {
        E::custom(format!("{}: expected {}, found {found}", self.field.name, self.expected()))
    }

    fn expected(&self) -> Cow<'static, str> {
        match self.field.kind {
            FieldKind::Message(message) => format!("an object ({})", message.name).into(),
            FieldKind::Enum(each) => format!("a {}", each.name).into(),
            FieldKind::Float | FieldKind::Double => "a number".into(),
            FieldKind::Bool => "true or false".into(),
            FieldKind::String => "a string".into(),
            FieldKind::Bytes => "a string in base64".into(),
            _ => "an integer".into(),
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let FieldKind::Message(message) = self.field.kind else {
            return json.deserialize_any(self);
        };
        put_tag(self.out, self.field);
        put_sized(self.out, |out| {
            MessageBody { name: self.field.name, message, out }.deserialize(json)
        })
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.expected(), self.field.name)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        if !matches!(self.field.kind, FieldKind::Bool) {
            return Err(self.wrong(if value { "true" } else { "false" }));
        }
        put_tag(self.out, self.field);
        put_varint(self.out, value.into());
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.real(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.field.kind {
            FieldKind::String => self.bytes(text.as_bytes()),
            FieldKind::Bytes => match base64::engine::general_purpose::STANDARD.decode(text) {
                Ok(bytes) => self.bytes(&bytes),
                Err(e) => return Err(self.wrong(&format!("{text:?} ({e})"))),
            },
            FieldKind::Enum(each) => {
                let named = each.values.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                let Some((_, number)) = named else {
                    let near = nearest_name(text, each.values.iter().map(|v| v.0));
                    let (field, name) = (self.field.name, each.name);
                    return Err(E::custom(format!("{field}: {name} has no value {text}{near}")));
                };
                return self.whole((*number).into());
            }
            FieldKind::Float | FieldKind::Double => match text {
                "NaN" => return self.real(f64::NAN),
                "Infinity" => return self.real(f64::INFINITY),
                "-Infinity" => return self.real(f64::NEG_INFINITY),
                _ => match text.parse::<f64>() {
                    Ok(value) if value.is_finite() => return self.real(value),
                    _ => return Err(self.wrong(&format!("{text:?}"))),
                },
            },
            // Large numbers are strings, as not every reader of JSON could hold them.
            FieldKind::Int32 | FieldKind::UInt32 | FieldKind::Int64 | FieldKind::UInt64 => {
                match text.parse() {
                    Ok(value) => return self.whole(value),
                    Err(_) => return Err(self.wrong(&format!("{text:?}"))),
                }
            }
            // The key of a map.
            FieldKind::Bool if text == "true" || text == "false" => {
                return self.visit_bool(text == "true");
            }
            FieldKind::Bool | FieldKind::Message(_) => return Err(self.wrong(&format!("{text:?}"))),
        }
        Ok(())
    }
}

/// `max_batch_size` as `maxBatchSize`.
fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for c in name.chars() {
        match c {
            '_' => upper = true,
            c if std::mem::take(&mut upper) => out.push(c.to_ascii_uppercase()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
