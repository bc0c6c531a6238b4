//! Reads an array of numbers or booleans into tensor bytes in one pass: syntax, value and store.
//!
//! Only what is well-formed and fits is read. Anything else returns `None`, and `data.rs` reads the
//! array value by value, with the error texts of v2. So this reader has no errors of its own.

use super::half::{BF16, FP16};
use trtserver_request::DType;

/// Longest integer that an `i64` holds in any case.
const I64_DIGITS: usize = 18;
/// Longest integer that a `u64` may hold.
const U64_DIGITS: usize = 20;
/// All integers up to here are doubles.
const EXACT: u64 = 1 << 53;
/// These are, too.
const POWERS_OF_TEN: [f64; I64_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

/// Reads the array that `text` starts with, nested up to `levels` deep, into `out`, which its
/// values fill exactly. Returns the length of the array.
pub fn read_numbers(text: &[u8], levels: usize, dtype: DType, out: &mut [u8]) -> Option<usize> {
    match dtype {
        DType::Bool => array(text, levels, out, |t| boolean(t).map(|(v, n)| ([u8::from(v)], n))),
        DType::Uint8 => array(text, levels, out, |t| narrow::<1>(unsigned(t))),
        DType::Uint16 => array(text, levels, out, |t| narrow::<2>(unsigned(t))),
        DType::Uint32 => array(text, levels, out, |t| narrow::<4>(unsigned(t))),
        DType::Uint64 => array(text, levels, out, |t| narrow::<8>(unsigned(t))),
        DType::Int8 => array(text, levels, out, |t| narrow::<1>(signed(t))),
        DType::Int16 => array(text, levels, out, |t| narrow::<2>(signed(t))),
        DType::Int32 => array(text, levels, out, |t| narrow::<4>(signed(t))),
        DType::Int64 => array(text, levels, out, |t| narrow::<8>(signed(t))),
        DType::Fp16 => {
            array(text, levels, out, |t| real(t).map(|(v, n)| (FP16.narrow(v).to_le_bytes(), n)))
        }
        DType::Bf16 => {
            array(text, levels, out, |t| real(t).map(|(v, n)| (BF16.narrow(v).to_le_bytes(), n)))
        }
        DType::Fp32 => {
            array(text, levels, out, |t| real(t).map(|(v, n)| ((v as f32).to_le_bytes(), n)))
        }
        DType::Fp64 => array(text, levels, out, |t| real(t).map(|(v, n)| (v.to_le_bytes(), n))),
        DType::String => None,
    }
}

/// `value` reads the value that a text starts with: its bytes, and the length of its token.
#[inline(always)]
fn array<const N: usize>(
    text: &[u8],
    levels: usize,
    out: &mut [u8],
    value: impl Fn(&[u8]) -> Option<([u8; N], usize)>,
) -> Option<usize> {
    let (slots, rest) = out.as_chunks_mut::<N>();
    let mut slots = slots.iter_mut();
    let (mut at, mut level) = (0, 0);
    if text.first() != Some(&b'[') || !rest.is_empty() {
        return None;
    }
    loop {
        at = next(text, at);
        if text.get(at) == Some(&b'[') {
            level += 1;
            if level > levels {
                return None;
            }
            at = next(text, at + 1);
            if text.get(at) != Some(&b']') {
                continue;
            }
        } else {
            let (bytes, length) = value(text.get(at..)?)?;
            *slots.next()? = bytes;
            at = next(text, at + length);
        }
        while text.get(at) == Some(&b']') {
            level -= 1;
            if level == 0 {
                return slots.next().is_none().then_some(at + 1);
            }
            at = next(text, at + 1);
        }
        if text.get(at) != Some(&b',') {
            return None;
        }
        at += 1;
    }
}

/// The position of the next byte that is not white space.
#[inline(always)]
fn next(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

fn boolean(text: &[u8]) -> Option<(bool, usize)> {
    match text {
        [b't', b'r', b'u', b'e', ..] => Some((true, 4)),
        [b'f', b'a', b'l', b's', b'e', ..] => Some((false, 5)),
        _ => None,
    }
}

/// The low bytes of an integer; narrow types wrap silently.
#[inline(always)]
fn narrow<const N: usize>(value: Option<(u64, usize)>) -> Option<([u8; N], usize)> {
    let (value, length) = value?;
    value.to_le_bytes().first_chunk().map(|bytes| (*bytes, length))
}

/// The digit at a position.
#[inline(always)]
fn digit(text: &[u8], at: usize) -> Option<u64> {
    text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10).map(u64::from)
}

/// The number that eight digits at a position make: pairs, then fours, then all of them, in one
/// register.
#[inline(always)]
fn eight_digits(text: &[u8], at: usize) -> Option<u64> {
    let digits = u64::from_le_bytes(*text.get(at..)?.first_chunk()?);
    let values = digits.wrapping_sub(0x3030_3030_3030_3030);
    if (digits.wrapping_add(0x4646_4646_4646_4646) | values) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = (values * 10 + (values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// Sign and digits of an integer, or of a number before its point.
struct WholeNumber {
    negative: bool,
    /// Modulo 2⁶⁴.
    magnitude: u64,
    digits: usize,
}

impl WholeNumber {
    /// A zero ends the integer, because JSON has no leading zeros: a further digit is then not what
    /// has to follow a value.
    #[inline(always)]
    fn read(text: &[u8]) -> Option<Self> {
        let negative = text.first() == Some(&b'-');
        let start = usize::from(negative);
        let mut magnitude = digit(text, start)?;
        let mut digits = 1;
        if magnitude != 0 {
            while let Some(digit) = digit(text, start + digits) {
                magnitude = magnitude.wrapping_mul(10).wrapping_add(digit);
                digits += 1;
            }
        }
        Some(Self { negative, magnitude, digits })
    }

    #[inline(always)]
    fn length(&self) -> usize {
        usize::from(self.negative) + self.digits
    }
}

/// A non-negative integer; `-0` is one.
#[inline(always)]
fn unsigned(text: &[u8]) -> Option<(u64, usize)> {
    let whole = WholeNumber::read(text)?;
    let fits = match whole.digits {
        _ if whole.negative => whole.magnitude == 0 && whole.digits == 1,
        0..U64_DIGITS => true,
        U64_DIGITS => token(text, whole.length()).parse::<u64>().is_ok(),
        _ => false,
    };
    fits.then_some((whole.magnitude, whole.length()))
}

/// The bits of a signed integer.
#[inline(always)]
fn signed(text: &[u8]) -> Option<(u64, usize)> {
    let whole = WholeNumber::read(text)?;
    let fits = whole.digits <= I64_DIGITS || token(text, whole.length()).parse::<i64>().is_ok();
    let value = if whole.negative { whole.magnitude.wrapping_neg() } else { whole.magnitude };
    fits.then_some((value, whole.length()))
}

/// Any number, `NaN` and infinities included.
#[inline(always)]
fn real(text: &[u8]) -> Option<(f64, usize)> {
    let Some(WholeNumber { negative, mut magnitude, mut digits }) = WholeNumber::read(text) else {
        return not_finite(text);
    };
    let mut end = usize::from(negative) + digits;
    let mut decimals = 0;
    if text.get(end) == Some(&b'.') {
        let start = end + 1;
        end = start;
        while let Some(eight) = eight_digits(text, end) {
            magnitude = magnitude.wrapping_mul(100_000_000).wrapping_add(eight);
            end += 8;
        }
        while let Some(digit) = digit(text, end) {
            magnitude = magnitude.wrapping_mul(10).wrapping_add(digit);
            end += 1;
        }
        decimals = end - start;
        digits += decimals;
        if decimals == 0 {
            return None;
        }
    }
    let exponent = matches!(text.get(end), Some(b'e' | b'E'));
    // Only one operation rounds: the conversion, or the division of two exact numbers.
    if !exponent && digits <= I64_DIGITS && (decimals == 0 || magnitude <= EXACT) {
        let value = magnitude as i64 as f64 / POWERS_OF_TEN[decimals];
        // An integer has no negative zero.
        let minus = negative && (decimals > 0 || magnitude > 0);
        return Some((if minus { -value } else { value }, end));
    }
    // An exponent without digits is not part of the number for it, and is then not what has to
    // follow a value.
    let (value, length) = fast_float2::parse_partial::<f64, _>(text).ok()?;
    value.is_finite().then_some((value, length))
}

#[cold]
fn not_finite(text: &[u8]) -> Option<(f64, usize)> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let mut names = ["NaN", "Infinity", "Inf"].into_iter();
    let name = names.find(|name| unsigned.starts_with(name.as_bytes()))?;
    let length = text.len() - unsigned.len() + name.len();
    Some((token(text, length).parse().ok()?, length))
}

/// The first bytes of a text, which are ASCII.
#[cold]
fn token(text: &[u8], length: usize) -> &str {
    std::str::from_utf8(&text[..length]).unwrap_or_default()
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
