//! Contents of tensors as the text of trace files: elements separated by commas.

use std::fmt::{Display, Write};

/// The elements of a tensor in its wire format. The text ends with `…` where it would be longer
/// than `room` bytes. FP16 and BF16 have none, as in Triton.
pub fn elements_text(dtype: &str, bytes: &[u8], room: usize) -> String {
    let mut text = String::new();
    match dtype {
        "BOOL" => put(&mut text, room, bytes.iter().map(|byte| u8::from(*byte != 0))),
        "UINT8" => put(&mut text, room, bytes.iter()),
        "INT8" => put(&mut text, room, bytes.iter().map(|byte| byte.cast_signed())),
        "UINT16" => put(&mut text, room, words(bytes).map(u16::from_le_bytes)),
        "INT16" => put(&mut text, room, words(bytes).map(i16::from_le_bytes)),
        "UINT32" => put(&mut text, room, words(bytes).map(u32::from_le_bytes)),
        "INT32" => put(&mut text, room, words(bytes).map(i32::from_le_bytes)),
        "UINT64" => put(&mut text, room, words(bytes).map(u64::from_le_bytes)),
        "INT64" => put(&mut text, room, words(bytes).map(i64::from_le_bytes)),
        "FP32" => put(&mut text, room, words(bytes).map(f32::from_le_bytes)),
        "FP64" => put(&mut text, room, words(bytes).map(f64::from_le_bytes)),
        "BYTES" => put(&mut text, room, strings(bytes)),
        _ => {}
    }
    text
}

/// Dimensions, separated by commas.
pub fn dims_text(shape: &[i64]) -> String {
    let mut text = String::new();
    put(&mut text, usize::MAX, shape.iter());
    text
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// Strings in quotes; bytes that are not UTF-8 are replaced.
fn strings(mut bytes: &[u8]) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (string, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        Some(format!("\"{}\"", String::from_utf8_lossy(string)))
    })
}

fn put(text: &mut String, room: usize, elements: impl Iterator<Item = impl Display>) {
    for (i, element) in elements.enumerate() {
        if text.len() >= room {
            text.push('…');
            return;
        }
        // Writing into a string cannot fail.
        let _ = write!(text, "{}{element}", if i > 0 { "," } else { "" });
    }
}

#[cfg(test)]
#[path = "tensor_text_tests.rs"]
mod tests;
