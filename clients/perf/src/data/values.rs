//! Values as the bytes of tensors.

use crate::engine::Random;
use crate::model::element_size;
use serde_json::Value;

/// An element of a BYTES tensor: its length, then its bytes.
pub fn push_string(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

pub fn random_text(length: usize, random: &mut Random) -> Vec<u8> {
    const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    (0..length).map(|_| LETTERS[random.below(LETTERS.len() as u64) as usize]).collect()
}

/// Finite numbers: real in [0, 1), integers of any value, booleans 0 or 1.
pub fn random_values(datatype: &str, count: usize, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::with_capacity(count * element_size(datatype).unwrap_or(0));
    for _ in 0..count {
        match datatype {
            "BOOL" => out.push(random.below(2) as u8),
            "FP16" | "BF16" | "FP32" | "FP64" => push_real(random.unit(), datatype, &mut out),
            _ => {
                let size = element_size(datatype).unwrap_or(0);
                out.extend_from_slice(&random.next().to_le_bytes()[..size]);
            }
        }
    }
    out
}

fn push_real(value: f64, datatype: &str, out: &mut Vec<u8>) {
    let single = value as f32;
    match datatype {
        "FP64" => out.extend_from_slice(&value.to_le_bytes()),
        "FP32" => out.extend_from_slice(&single.to_le_bytes()),
        "BF16" => out.extend_from_slice(&to_bf16(single).to_le_bytes()),
        _ => out.extend_from_slice(&to_fp16(single).to_le_bytes()),
    }
}

/// Rounded to nearest, ties to even.
pub fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Rounded to nearest, ties to even.
pub fn to_fp16(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16) as u16 & 0x8000;
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    if magnitude >= 65_520.0 {
        return sign | 0x7c00;
    }
    if magnitude < 6.103_515_6e-5 {
        // Subnormal: a multiple of 2^-24.
        return sign | (magnitude * 16_777_216.0).round_ties_even() as u16;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + 0xfff + (bits >> 13 & 1);
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

/// Appends a JSON value as an element.
///
/// # Errors
/// It is not a value of this type.
pub fn push_json(value: &Value, datatype: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let refuse = || format!("{value} is not a value of type {datatype}");
    let integer = |low: i128, high: i128| {
        let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        // Some writers give integers as 1.0.
        let number = number
            .or_else(|| value.as_f64().filter(|real| real.fract() == 0.0).map(|real| real as i128));
        number.filter(|number| (low..=high).contains(number)).ok_or_else(refuse)
    };
    match datatype {
        "BYTES" => match value {
            Value::String(text) => push_string(text.as_bytes(), out),
            Value::Null | Value::Object(_) | Value::Array(_) => return Err(refuse()),
            other => push_string(other.to_string().as_bytes(), out),
        },
        "BOOL" => {
            let number = value.as_bool().map(i128::from);
            out.push(number.map_or_else(|| integer(0, 1), Ok)? as u8);
        }
        "FP16" | "BF16" | "FP32" | "FP64" => {
            push_real(value.as_f64().ok_or_else(refuse)?, datatype, out);
        }
        _ => {
            let size = element_size(datatype).ok_or_else(refuse)?;
            let bits = 8 * size as u32;
            let (low, high) = match datatype.starts_with('U') {
                true => (0, (1_i128 << bits) - 1),
                false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
            };
            out.extend_from_slice(&integer(low, high)?.to_le_bytes()[..size]);
        }
    }
    Ok(())
}
