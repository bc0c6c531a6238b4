//! Messages to protobuf text, in the form C++ programs print for debugging.
use crate::encoded::{Node, Value};
use crate::real;
use crate::schema::{Field, Kind, Message};

pub(super) fn lines(message: &'static Message, bytes: &[u8]) -> String {
    let mut printer = Printer { out: String::new(), indent: Some(0) };
    printer.message(&Node::read(message, bytes));
    printer.out
}

pub(super) fn line(message: &'static Message, bytes: &[u8]) -> String {
    let mut printer = Printer { out: String::new(), indent: None };
    printer.message(&Node::read(message, bytes));
    printer.out.truncate(printer.out.trim_end_matches(' ').len());
    printer.out
}

struct Printer {
    out: String,
    /// `None` prints everything in one line.
    indent: Option<usize>,
}

impl Printer {
    fn message(&mut self, node: &Node) {
        for (place, field) in node.message.fields.iter().enumerate() {
            let values = node.of(place);
            // Both halves of a map entry are printed, also where the encoder left one out.
            if values.is_empty() && node.message.map_entry {
                self.missing(field);
            }
            for (_, value) in values {
                self.field(field, value);
            }
        }
    }

    fn missing(&mut self, field: &Field) {
        match field.kind {
            Kind::Message(message) => {
                self.field(field, &Value::Message(Node { message, values: Vec::new() }));
            }
            Kind::String | Kind::Bytes => self.field(field, &Value::Bytes(b"")),
            Kind::Float => self.field(field, &Value::Float(0.0)),
            Kind::Double => self.field(field, &Value::Double(0.0)),
            _ => self.field(field, &Value::Varint(0)),
        }
    }

    fn field(&mut self, field: &Field, value: &Value) {
        self.start();
        self.out.push_str(field.name);
        if let Value::Message(node) = value {
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

    fn scalar(&mut self, kind: Kind, value: &Value) {
        match (kind, value) {
            (_, Value::Bytes(bytes)) => quote(&mut self.out, bytes),
            (_, Value::Float(value)) => self.out.push_str(&real::single(*value)),
            (_, Value::Double(value)) => self.out.push_str(&real::double(*value)),
            (Kind::Bool, Value::Varint(value)) => {
                self.out.push_str(if *value == 0 { "false" } else { "true" });
            }
            (Kind::Enum(each), Value::Varint(value)) => match each.name_of(*value as i32) {
                Some(name) => self.out.push_str(name),
                None => self.out.push_str(&(*value as i32).to_string()),
            },
            (Kind::UInt32 | Kind::UInt64, Value::Varint(value)) => {
                self.out.push_str(&value.to_string());
            }
            (_, Value::Varint(value)) => self.out.push_str(&(*value as i64).to_string()),
            (_, Value::Message(_)) => {}
        }
    }
}

/// Everything outside ASCII goes out as octal, so that the text may stand in an HTTP header.
fn quote(out: &mut String, bytes: &[u8]) {
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
