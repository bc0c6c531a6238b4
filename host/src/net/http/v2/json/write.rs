//! Writes compact JSON with keys in the given order. The bytes of strings are not checked.

use crate::request::Parameter;
use serde::Serialize;

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
        string(self.out, key.as_bytes());
        self.out.push(b':');
        self.out
    }

    pub fn string(&mut self, key: &str, value: &str) {
        string(self.key(key), value.as_bytes());
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
pub fn array<T>(
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

fn plain(out: &mut Vec<u8>, value: impl Serialize) {
    // Writing a number into a vector cannot fail.
    let _ = serde_json::to_writer(out, &value);
}

/// A request or response parameter.
pub fn parameter(out: &mut Vec<u8>, value: &Parameter) {
    match value {
        Parameter::String(text) => string(out, text.as_bytes()),
        Parameter::Int(n) => plain(out, n),
        Parameter::Bool(b) => plain(out, b),
        Parameter::Double(d) => double(out, *d),
    }
}

/// Dimensions.
pub fn shape(out: &mut Vec<u8>, dims: &[i64]) {
    array(out, dims, plain);
}

/// A string, whose bytes are not checked; only what JSON requires is escaped.
pub fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let mut start = 0;
    for (i, &byte) in bytes.iter().enumerate() {
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

/// The shortest digits that read back as the same number, in Triton's layout: no exponent for up to 21 digits before the point
/// and five zeros after it, an exponent without `+`, `.0` for whole numbers. NaN and infinities are unquoted tokens.
pub fn double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"-Infinity" } else { b"Infinity" });
    } else {
        let start = out.len();
        // Writing a number into a vector cannot fail.
        let _ = serde_json::to_writer(&mut *out, &value);
        if let Some(e) = out[start..].iter().position(|b| *b == b'e') {
            relayout(out, start, start + e);
        }
    }
}

/// Rewrites the number at `start`, whose exponent follows `e`.
#[cold]
fn relayout(out: &mut Vec<u8>, start: usize, e: usize) {
    let text = out.split_off(start);
    let (number, exponent) = text.split_at(e - start);
    let exponent = std::str::from_utf8(&exponent[1..]).ok().and_then(|t| t.parse::<i32>().ok());
    let Some(exponent) = exponent else { return out.extend_from_slice(&text) };
    let digits: Vec<u8> = number.iter().copied().filter(u8::is_ascii_digit).collect();
    // Digits before the point.
    let point = exponent + 1;
    if number[0] == b'-' && (-5..=21).contains(&point) {
        out.push(b'-');
    }
    match point {
        1..=21 => {
            let point = point as usize;
            out.extend((0..point).map(|i| digits.get(i).copied().unwrap_or(b'0')));
            out.push(b'.');
            out.extend_from_slice(digits.get(point..).filter(|d| !d.is_empty()).unwrap_or(b"0"));
        }
        -5..=0 => {
            out.extend_from_slice(b"0.");
            out.extend((point..0).map(|_| b'0'));
            out.extend_from_slice(&digits);
        }
        _ => {
            out.extend_from_slice(number);
            out.extend_from_slice(format!("e{exponent}").as_bytes());
        }
    }
}
