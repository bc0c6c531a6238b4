//! Elements of rows: what test runs feed to a model, and how far what they return is apart.

use crate::types::type_size;
use trtserver_plugin_api::abi::types::dtype;

/// Small numbers that differ from element to element; of integers 0 and 1, which are in the range of
/// most indices. Two seeds give the same numbers in another order.
pub fn fill(kind: u32, bytes: &mut [u8], seed: usize) {
    const HALVES: [u16; 5] = [0x3000, 0x3400, 0x3600, 0x3800, 0x3900];
    const BRAINS: [u16; 5] = [0x3e00, 0x3e80, 0x3ec0, 0x3f00, 0x3f20];
    let eighths = |at: usize| ((at + seed) % 5 + 1) as f32 / 8.0;
    let mut put = |size: usize, element: &dyn Fn(usize) -> [u8; 8]| {
        for (at, to) in bytes.chunks_exact_mut(size).enumerate() {
            to.copy_from_slice(&element(at)[..size]);
        }
    };
    let wide = |value: u64| value.to_le_bytes();
    match kind {
        dtype::FP16 => put(2, &|at| wide(HALVES[(at + seed) % 5].into())),
        dtype::BF16 => put(2, &|at| wide(BRAINS[(at + seed) % 5].into())),
        dtype::FP32 => put(4, &|at| wide(eighths(at).to_bits().into())),
        dtype::FP64 => put(8, &|at| wide(f64::from(eighths(at)).to_bits())),
        _ => put(type_size(kind).max(1), &|at| wide(((at + seed) % 2) as u64)),
    }
}

/// Whether two rows are equal, as far as the rounding of a sum in another order allows.
pub fn are_equal(kind: u32, one: &[u8], other: &[u8]) -> bool {
    let tolerance = match kind {
        dtype::FP16 | dtype::BF16 => 1e-2,
        dtype::FP32 | dtype::FP64 => 1e-3,
        _ => return one == other,
    };
    let close = |(a, b): (f64, f64)| {
        a == b
            || a.is_nan() && b.is_nan()
            || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-2)
    };
    one.len() == other.len() && numbers(kind, one).zip(numbers(kind, other)).all(close)
}

/// The mean distance of two rows of equal length, as a part of the mean size of their elements: 0 if
/// they are equal, 1 if one of them is zero.
pub fn relative_distance(kind: u32, one: &[u8], other: &[u8]) -> f64 {
    let (mut distance, mut sizes) = (0.0, [0.0; 2]);
    for (a, b) in numbers(kind, one).zip(numbers(kind, other)) {
        // Numbers that are not finite count by what they are, not by their size.
        let finite = |value: f64| if value.is_finite() { value.abs() } else { 1.0 };
        let differ = a != b && !(a.is_nan() && b.is_nan());
        distance += match a.is_finite() && b.is_finite() {
            true => (a - b).abs(),
            false if differ => finite(a).max(finite(b)),
            false => 0.0,
        };
        sizes[0] += finite(a);
        sizes[1] += finite(b);
    }
    if distance == 0.0 { 0.0 } else { distance / sizes[0].max(sizes[1]) }
}

/// The elements of a tensor; none of a type without numbers.
fn numbers(kind: u32, bytes: &[u8]) -> impl Iterator<Item = f64> {
    let size = type_size(kind);
    // A size of 0 is that of strings.
    let whole = if size == 0 { &[] } else { bytes };
    whole.chunks_exact(size.max(1)).map(move |element| read_number(kind, element))
}

fn read_number(kind: u32, element: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..element.len()].copy_from_slice(element);
    let bits = u64::from_le_bytes(wide);
    let unused = 64 - 8 * element.len() as u32;
    match kind {
        dtype::FP64 => f64::from_bits(bits),
        dtype::FP32 => f32::from_bits(bits as u32).into(),
        dtype::BF16 => f32::from_bits((bits as u32) << 16).into(),
        dtype::FP16 => read_half(bits as u32),
        dtype::INT8 | dtype::INT16 | dtype::INT32 | dtype::INT64 => {
            ((bits << unused) as i64 >> unused) as f64
        }
        _ => bits as f64,
    }
}

fn read_half(bits: u32) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent as i32 - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
#[path = "row_values_tests.rs"]
mod tests;
