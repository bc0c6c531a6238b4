//! Messages to JSON and back: the model configuration of v2 as its clients know it, and any message
//! by the rules of proto3 for v1. Fields keep the names of the proto files.
mod parse; // the other way

pub use parse::{JsonError, parse};

use base64::Engine;

use crate::float_format;
use crate::message_tree::{EncodedNode, EncodedValue};
use crate::schema::{Described, FieldKind, FieldSchema, MessageSchema};
use crate::v2::ModelConfig;

/// The configuration in one line: scalars that are not set print their defaults, messages and
/// members of a oneof that are not set are left out.
pub fn model_config(config: &ModelConfig) -> String {
    write_field(config, JsonStyle { defaults: true, camel_case: false, number: is_number })
}

/// Any message in one line: only what is set, 64-bit integers as strings.
pub fn message<M: Described>(message: &M) -> String {
    write_field(message, JsonStyle { defaults: false, camel_case: false, number: |_, _| false })
}

/// Any message in one line, as v2 servers send most of theirs: scalars that are not set print their
/// defaults, all numbers are numbers.
pub fn with_numbers<M: Described>(message: &M) -> String {
    write_field(message, JsonStyle { defaults: true, camel_case: false, number: |_, _| true })
}

/// As [`message`], with names in lowerCamelCase: the default of protobuf libraries.
pub fn camel_case<M: Described>(message: &M) -> String {
    write_field(message, JsonStyle { defaults: false, camel_case: true, number: |_, _| false })
}

/// 64-bit fields of the configuration that v2 clients read as numbers. All others are strings.
const NUMBERS: &[(&str, &str)] = &[
    ("ModelInput", "dims"),
    ("ModelOutput", "dims"),
    ("ModelTensorReshape", "shape"),
    ("ModelVersionPolicy.Specific", "versions"),
    ("ModelDynamicBatching", "max_queue_delay_microseconds"),
    ("ModelDynamicBatching", "priority_levels"),
    ("ModelDynamicBatching", "default_priority_level"),
    ("ModelQueuePolicy", "default_timeout_microseconds"),
    ("ModelSequenceBatching", "max_sequence_idle_microseconds"),
    ("ModelSequenceBatching.StrategyDirect", "max_queue_delay_microseconds"),
    ("ModelSequenceBatching.StrategyOldest", "max_queue_delay_microseconds"),
    ("ModelSequenceBatching.State", "dims"),
    ("ModelEnsembling.Step", "model_version"),
    ("ModelWarmup.Input", "dims"),
];

fn is_number(message: &MessageSchema, field: &FieldSchema) -> bool {
    NUMBERS.contains(&(message.name, field.name))
}

#[derive(Clone, Copy)]
struct JsonStyle {
    defaults: bool,
    /// Names of fields in lowerCamelCase.
    camel_case: bool,
    /// Whether a 64-bit field prints as a number.
    number: fn(&MessageSchema, &FieldSchema) -> bool,
}

fn write_field<M: Described>(message: &M, style: JsonStyle) -> String {
    let bytes = message.encode_to_vec();
    let mut out = String::with_capacity(bytes.len() * 4);
    style.object(&mut out, &EncodedNode::read(M::schema(), &bytes));
    out
}

impl JsonStyle {
    fn object(self, out: &mut String, node: &EncodedNode) {
        let mut comma = Comma::new(out, '{');
        for (place, field) in node.message.fields.iter().enumerate() {
            let values = node.field_values(place);
            let alone = matches!(field.kind, FieldKind::Message(_)) || field.oneof.is_some();
            if values.is_empty() && (!self.defaults || (alone && !field.repeated)) {
                continue;
            }
            comma.next(out);
            match self.camel_case {
                true => quote_text(out, &lower_camel_case(field.name)),
                false => quote_text(out, field.name),
            }
            out.push(':');
            if let Some(entry) = field.map() {
                self.map(out, entry, values);
            } else if field.repeated {
                let mut comma = Comma::new(out, '[');
                for (_, value) in values {
                    comma.next(out);
                    self.value(out, node.message, field, Some(value));
                }
                out.push(']');
            } else {
                self.value(out, node.message, field, values.last().map(|(_, v)| v));
            }
        }
        out.push('}');
    }

    fn map(
        self,
        out: &mut String,
        entry: &'static MessageSchema,
        values: &[(usize, EncodedValue)],
    ) {
        let mut comma = Comma::new(out, '{');
        for (_, value) in values {
            let (EncodedValue::Message(pair), [key, value]) = (value, entry.fields) else {
                continue;
            };
            comma.next(out);
            let mut name = String::new();
            self.value(&mut name, entry, key, pair.field_values(0).last().map(|(_, v)| v));
            // Names are always strings, whatever the type of the key.
            if !name.starts_with('"') {
                name = format!("\"{name}\"");
            }
            out.push_str(&name);
            out.push(':');
            self.value(out, entry, value, pair.field_values(1).last().map(|(_, v)| v));
        }
        out.push('}');
    }

    /// A single value; `None` is the default of its kind.
    fn value(
        self,
        out: &mut String,
        message: &MessageSchema,
        field: &FieldSchema,
        value: Option<&EncodedValue>,
    ) {
        let whole = match value {
            Some(EncodedValue::Varint(whole)) => *whole,
            _ => 0,
        };
        match (field.kind, value) {
            (FieldKind::Message(_), Some(EncodedValue::Message(node))) => self.object(out, node),
            // The encoder leaves a map's value out when nothing in it is set.
            (FieldKind::Message(message), _) => {
                self.object(out, &EncodedNode { message, values: Vec::new() });
            }
            (FieldKind::String, Some(EncodedValue::Bytes(text))) => {
                quote_text(out, &String::from_utf8_lossy(text))
            }
            (FieldKind::Bytes, Some(EncodedValue::Bytes(bytes))) => {
                quote_text(out, &base64::engine::general_purpose::STANDARD.encode(bytes));
            }
            (FieldKind::String | FieldKind::Bytes, _) => out.push_str("\"\""),
            (FieldKind::Float, Some(EncodedValue::Float(value))) => {
                push_real(out, &float_format::format_f32(*value))
            }
            (FieldKind::Double, Some(EncodedValue::Double(value))) => {
                push_real(out, &float_format::format_f64(*value))
            }
            (FieldKind::Float | FieldKind::Double, _) => out.push('0'),
            (FieldKind::Bool, _) => out.push_str(if whole == 0 { "false" } else { "true" }),
            (FieldKind::Enum(each), _) => match each.value_name(whole as i32) {
                Some(name) => quote_text(out, name),
                None => out.push_str(&(whole as i32).to_string()),
            },
            (FieldKind::Int32, _) => out.push_str(&(whole as i32).to_string()),
            (FieldKind::UInt32, _) => out.push_str(&(whole as u32).to_string()),
            (FieldKind::Int64 | FieldKind::UInt64, _) => {
                let text = match field.kind {
                    FieldKind::Int64 => (whole as i64).to_string(),
                    _ => whole.to_string(),
                };
                if (self.number)(message, field) {
                    out.push_str(&text);
                } else {
                    quote_text(out, &text);
                }
            }
        }
    }
}

/// `ready_state` as `readyState`.
fn lower_camel_case(name: &str) -> String {
    let mut upper = false;
    let letter = |c: char| match c {
        '_' => {
            upper = true;
            None
        }
        c if std::mem::take(&mut upper) => Some(c.to_ascii_uppercase()),
        c => Some(c),
    };
    name.chars().filter_map(letter).collect()
}

/// Opens an object or a list, and puts commas between what it holds.
struct Comma(bool);

impl Comma {
    fn new(out: &mut String, open: char) -> Self {
        out.push(open);
        Self(false)
    }

    fn next(&mut self, out: &mut String) {
        if self.0 {
            out.push(',');
        }
        self.0 = true;
    }
}

/// JSON has no numbers for these three.
fn push_real(out: &mut String, text: &str) {
    out.push_str(match text {
        "nan" | "-nan" => "\"NaN\"",
        "inf" => "\"Infinity\"",
        "-inf" => "\"-Infinity\"",
        number => number,
    });
}

fn quote_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
