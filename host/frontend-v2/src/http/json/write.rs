//! Writes compact JSON with keys in the given order. The bytes of strings are not checked.

use super::read::ordinary_bytes;
use super::text::Number;
use serde::Serialize;
use trtserver_request::ParameterValue;

/// An object being written; `end` closes it.
pub struct Object<'a> {
    pub out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a key and returns the buffer for its value.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        write_string(self.out, key.as_bytes());
        self.out.push(b':');
        self.out
    }

    /// The same for a key in which nothing needs an escape: a third of the instructions.
    #[inline]
    pub fn literal_key(&mut self, key: &'static str) -> &mut Vec<u8> {
        let before: &[u8] = if std::mem::take(&mut self.empty) { b"\"" } else { b",\"" };
        self.out.reserve(key.len() + 4);
        self.out.extend_from_slice(before);
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub fn string(&mut self, key: &str, value: &str) {
        write_string(self.key(key), value.as_bytes());
    }

    /// An integer or a boolean.
    pub fn plain(&mut self, key: &str, value: impl Serialize) {
        plain(self.key(key), value);
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}

/// `[` items `]`, each written by `each`.
pub fn write_array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        each(out, item);
    }
    out.push(b']');
}

/// An integer or a boolean.
pub fn plain(out: &mut Vec<u8>, value: impl Serialize) {
    // Writing a number into a vector cannot fail.
    let _ = serde_json::to_writer(out, &value);
}

/// A request or response parameter.
pub fn write_parameter(out: &mut Vec<u8>, value: &ParameterValue) {
    match value {
        ParameterValue::String(text) => write_string(out, text.as_bytes()),
        ParameterValue::Int(n) => plain(out, n),
        ParameterValue::Bool(b) => plain(out, b),
        ParameterValue::Double(d) => d.write(out),
    }
}

/// Dimensions.
pub fn write_shape(out: &mut Vec<u8>, dims: &[i64]) {
    write_array(out, dims, plain);
}

/// A string, whose bytes are not checked; only what JSON requires is escaped.
pub fn write_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut start = 0;
    let ordinary = ordinary_bytes(bytes);
    for (i, &byte) in bytes.iter().enumerate().skip(ordinary) {
        let short = match byte {
            b'"' | b'\\' => byte,
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => 0,
            _ => continue,
        };
        out.extend_from_slice(&bytes[start..i]);
        start = i + 1;
        if short != 0 {
            out.extend_from_slice(&[b'\\', short]);
        } else {
            out.extend_from_slice(format!("\\u{byte:04X}").as_bytes());
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}
