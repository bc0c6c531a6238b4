//! Elements of tensors: values for inputs, and the first difference between two outputs.

use trtserver_plugin_testkit::{Output, Response};
use trtserver_request::DType;

/// Elements of the rows of a request are numbered from here, so that rows differ.
const ROW: u64 = 1 << 32;

/// A small value, valid for most models. Equal arguments give equal values.
pub fn element_value(dtype: DType, input: usize, row: usize, at: usize) -> Vec<u8> {
    let n = (scramble(row as u64 * ROW + ((input as u64) << 24) + at as u64) % 7) as u8;
    let small = f32::from(n) * 0.25;
    match (dtype, dtype.size()) {
        (DType::Fp32, _) => small.to_le_bytes().to_vec(),
        (DType::Fp64, _) => f64::from(small).to_le_bytes().to_vec(),
        // 0, 0.25, … 1.5 in half precision.
        (DType::Fp16, _) => [0u16, 0x3400, 0x3800, 0x3A00, 0x3C00, 0x3D00, 0x3E00][usize::from(n)]
            .to_le_bytes()
            .to_vec(),
        (DType::Bf16, _) => small.to_le_bytes()[2..].to_vec(),
        (DType::Bool, _) => vec![n % 2],
        (_, None) => {
            let text = format!("s{n}");
            [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
        }
        (_, Some(size)) => {
            let mut bytes = vec![0; size];
            bytes[0] = n;
            bytes
        }
    }
}

/// The finaliser of SplitMix64.
fn scramble(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// The first difference between responses, with what was expected and what was found.
/// Floating-point numbers may differ by rounding, since the order of sums may.
pub fn first_difference(expected: &Response, found: &Response) -> Option<String> {
    expected.outputs.iter().find_map(|expected| {
        let name = &expected.name;
        let Some(found) = found.output(name) else {
            return Some(format!("output '{name}' is missing"));
        };
        if found.shape != expected.shape {
            let (expected, found) = (&expected.shape, &found.shape);
            return Some(format!("output '{name}' has shape {found:?}, expected {expected:?}"));
        }
        element_difference(expected, found)
    })
}

fn element_difference(expected: &Output, found: &Output) -> Option<String> {
    let name = &expected.name;
    let dtype = DType::from_number(expected.dtype)?;
    let (wanted, got) = (elements(dtype, &expected.data), elements(dtype, &found.data));
    if wanted.len() != got.len() {
        let (wanted, got) = (wanted.len(), got.len());
        return Some(format!("output '{name}' has {got} elements, expected {wanted}"));
    }
    let pairs = wanted.iter().zip(&got).enumerate();
    let mut different = pairs.filter(|(_, (wanted, got))| !same(dtype, wanted, got));
    let (at, (wanted, got)) = different.next()?;
    let at = indices(&expected.shape, at);
    let (wanted, got) = (shown(dtype, wanted), shown(dtype, got));
    Some(format!("output '{name}' is {got} at {at:?}, expected {wanted}"))
}

/// The bytes of each element, of strings without their length.
fn elements(dtype: DType, mut data: &[u8]) -> Vec<&[u8]> {
    if let Some(size) = dtype.size() {
        return data.chunks(size).collect();
    }
    let mut strings = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk::<4>() {
        let end = (u32::from_le_bytes(*length) as usize).min(rest.len());
        strings.push(&rest[..end]);
        data = &rest[end..];
    }
    strings
}

/// The position of an element in a tensor of this shape.
fn indices(shape: &[i64], mut at: usize) -> Vec<usize> {
    let mut indices: Vec<usize> = shape
        .iter()
        .rev()
        .map(|length| {
            let length = usize::try_from(*length).unwrap_or(1).max(1);
            let index = at % length;
            at /= length;
            index
        })
        .collect();
    indices.reverse();
    indices
}

fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let tolerance = match dtype {
        DType::Fp32 | DType::Fp64 => 1e-3,
        DType::Fp16 | DType::Bf16 => 2e-2,
        _ => return a == b,
    };
    let (x, y) = (number(dtype, a), number(dtype, b));
    x == y || (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(1.0) || x.is_nan() && y.is_nan()
}

fn shown(dtype: DType, element: &[u8]) -> String {
    match dtype {
        DType::String => format!("{:?}", String::from_utf8_lossy(element)),
        DType::Bool => (element != [0]).to_string(),
        _ => number(dtype, element).to_string(),
    }
}

/// The value of a numeric element.
fn number(dtype: DType, element: &[u8]) -> f64 {
    let mut bytes = [0; 8];
    let end = element.len().min(8);
    bytes[..end].copy_from_slice(&element[..end]);
    let bits = u64::from_le_bytes(bytes);
    match dtype {
        DType::Fp64 => f64::from_bits(bits),
        DType::Fp32 => f64::from(f32::from_bits(bits as u32)),
        DType::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
        DType::Fp16 => half(bits as u16),
        DType::Int8 => f64::from(bits as i8),
        DType::Int16 => f64::from(bits as i16),
        DType::Int32 => f64::from(bits as i32),
        DType::Int64 => bits as i64 as f64,
        _ => bits as f64,
    }
}

/// A half-precision number.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = ((bits >> 10) & 31, f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 0 { size } else { -size }
}

#[cfg(test)]
#[path = "element_tests.rs"]
mod tests;
