//! Numbers as text.
//!
//! Floating-point numbers have the fewest digits that read back as the same number of their type,
//! in Triton's layout: no exponent for up to 21 digits before the point and five zeros after it, an
//! exponent without `+`, `.0` for whole numbers. NaN and infinities are tokens without quotation
//! marks.

use std::io::Write;

/// A number that writes itself as JSON text.
pub trait Number: Copy {
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! integers {
    ($($t:ty),*) => {
        $(impl Number for $t {
            #[inline]
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
            }
        })*
    };
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

impl Number for bool {
    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self { b"true" } else { b"false" });
    }
}

/// The positive FP32 number whose shortest text, `7.038531e-26`, is another number to a reader
/// that, like most, reads a double and narrows it: the double lies in the middle between two FP32
/// numbers. It is written with the digits of a double. A search through all FP32 numbers found no
/// other.
const MISREAD: u32 = 0x15ae_43fd;

impl Number for f32 {
    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        let magnitude = self.abs();
        // No exponent in any case.
        if (1e-5..1e12).contains(&magnitude) || magnitude == 0.0 {
            out.extend_from_slice(zmij::Buffer::new().format_finite(self).as_bytes());
        } else if magnitude.to_bits() == MISREAD {
            f64::from(self).write(out);
        } else {
            any(out, zmij::Buffer::new().format(self));
        }
    }
}

impl Number for f64 {
    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        let magnitude = self.abs();
        if (1e-4..1e15).contains(&magnitude) || magnitude == 0.0 {
            out.extend_from_slice(zmij::Buffer::new().format_finite(self).as_bytes());
        } else {
            any(out, zmij::Buffer::new().format(self));
        }
    }
}

/// Writes the number that `text` has in the layout of the standard library.
#[inline(never)]
fn any(out: &mut Vec<u8>, text: &str) {
    match text.split_once('e') {
        Some((mantissa, exponent)) => relayout(out, mantissa.as_bytes(), exponent),
        None if text == "inf" => out.extend_from_slice(b"Infinity"),
        None if text == "-inf" => out.extend_from_slice(b"-Infinity"),
        None => out.extend_from_slice(text.as_bytes()),
    }
}

/// Writes the number `mantissa`e`exponent`.
fn relayout(out: &mut Vec<u8>, mantissa: &[u8], exponent: &str) {
    let unsigned = mantissa.strip_prefix(b"-").unwrap_or(mantissa);
    let (first, fraction) = unsigned.split_at(1);
    let fraction = fraction.strip_prefix(b".").unwrap_or(fraction);
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if unsigned.len() < mantissa.len() {
        out.push(b'-');
    }
    // Digits before the point.
    match exponent + 1 {
        point @ 1..=21 => {
            let more = point as usize - 1;
            let (before, after) = fraction.split_at(more.min(fraction.len()));
            out.extend_from_slice(first);
            out.extend_from_slice(before);
            out.extend(std::iter::repeat_n(b'0', more - before.len()));
            out.push(b'.');
            out.extend_from_slice(if after.is_empty() { b"0" } else { after });
        }
        point @ -5..=0 => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
            out.extend_from_slice(first);
            out.extend_from_slice(fraction);
        }
        _ => {
            out.extend_from_slice(unsigned);
            // Writing to a vector cannot fail.
            let _ = write!(out, "e{exponent}");
        }
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
