//! Messages to protobuf text, in the form C++ programs print for debugging.
use crate::float_format;
use crate::message_tree::{EncodedNode, EncodedValue};
use crate::schema::{FieldKind, FieldSchema, MessageSchema};

pub(super) fn print_lines(message: &'static MessageSchema, bytes: &[u8]) -> String {
    let mut printer = TextPrinter { out: String::new(), indent: Some(0) };
    printer.message(&EncodedNode::read(message, bytes));
    printer.out
}

pub(super) fn print_line(message: &'static MessageSchema, bytes: &[u8]) -> String {
    let mut printer = TextPrinter { out: String::new(), indent: None };
    printer.message(&EncodedNode::read(message, bytes));
    printer.out.truncate(printer.out.trim_end_matches(' ').len());
    printer.out
}

struct TextPrinter {
    out: String,
    /// `None` prints everything in one line.
    indent: Option<usize>,
}

impl TextPrinter {
    fn message(&mut self, node: &EncodedNode) {
        for (place, field) in node.message.fields.iter().enumerate() {
            let values = node.field_values(place);
            // Both halves of a map entry are printed, also where the encoder left one out.
            if values.is_empty() && node.message.map_entry {
                self.missing(field);
            }
            for (_, value) in values {
                self.field(field, value);
            }
        }
    }

    fn missing(&mut self, field: &FieldSchema) {
        match field.kind {
            FieldKind::Message(message) => {
                self.field(
                    field,
                    &EncodedValue::Message(EncodedNode { message, values: Vec::new() }),
                );
            }
            FieldKind::String | FieldKind::Bytes => self.field(field, &EncodedValue::Bytes(b"")),
            FieldKind::Float => self.field(field, &EncodedValue::Float(0.0)),
            FieldKind::Double => self.field(field, &EncodedValue::Double(0.0)),
            _ => self.field(field, &EncodedValue::Varint(0)),
        }
    }

    fn field(&mut self, field: &FieldSchema, value: &EncodedValue) {
        self.start();
        self.out.push_str(field.name);
        if let EncodedValue::Message(node) = value {
            self.out.push_str(" {");
            self.end();
            self.indent = self.indent.map(|n| n + 1);
            self.message(node);
            self.indent = self.indent.map(|n| n - 1);
            self.start();
            self.out.push('}');
        } else {
            self.out.push_str(": ");
            self.scalar(field.kind, value);
        }
        self.end();
    }

    fn start(&mut self) {
        for _ in 0..self.indent.unwrap_or(0) {
            self.out.push_str("  ");
        }
    }

    fn end(&mut self) {
        self.out.push(if self.indent.is_some() { '\n' } else { ' ' });
    }

    fn scalar(&mut self, kind: FieldKind, value: &EncodedValue) {
        match (kind, value) {
            (_, EncodedValue::Bytes(bytes)) => quote_bytes(&mut self.out, bytes),
            (_, EncodedValue::Float(value)) => self.out.push_str(&float_format::format_f32(*value)),
            (_, EncodedValue::Double(value)) => {
                self.out.push_str(&float_format::format_f64(*value))
            }
            (FieldKind::Bool, EncodedValue::Varint(value)) => {
                self.out.push_str(if *value == 0 { "false" } else { "true" });
            }
            (FieldKind::Enum(each), EncodedValue::Varint(value)) => {
                match each.value_name(*value as i32) {
                    Some(name) => self.out.push_str(name),
                    None => self.out.push_str(&(*value as i32).to_string()),
                }
            }
            (FieldKind::UInt32 | FieldKind::UInt64, EncodedValue::Varint(value)) => {
                self.out.push_str(&value.to_string());
            }
            (_, EncodedValue::Varint(value)) => self.out.push_str(&(*value as i64).to_string()),
            (_, EncodedValue::Message(_)) => {}
        }
    }
}

/// Everything outside ASCII goes out as octal, so that the text may stand in an HTTP header.
fn quote_bytes(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(byte.into());
            }
            b' '..=b'~' => out.push(byte.into()),
            _ => {
                out.push('\\');
                for shift in [6, 3, 0] {
                    out.push((b'0' + (byte >> shift & 7)).into());
                }
            }
        }
    }
    out.push('"');
}
