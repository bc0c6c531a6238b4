//! FP16 and BF16 as JSON numbers: nearest value when read, shortest digits that read back as the
//! same value when written.

use super::text::Number;
use std::io::{Cursor, Write};

/// A binary floating-point format of 16 bits.
pub struct HalfFloat {
    fraction_bits: i32,
    exponent_bits: i32,
}

pub const FP16: HalfFloat = HalfFloat { fraction_bits: 10, exponent_bits: 5 };
pub const BF16: HalfFloat = HalfFloat { fraction_bits: 7, exponent_bits: 8 };

impl HalfFloat {
    fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The exponent of infinities and NaN, at its place.
    fn infinity(&self) -> u16 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    /// The nearest value, of two the even one; infinity beyond the largest, as for FP32.
    pub fn narrow(&self, value: f64) -> u16 {
        let sign = u16::from(value.is_sign_negative()) << 15;
        if value.is_nan() {
            return sign | self.infinity() | 1 << (self.fraction_bits - 1);
        }
        let magnitude = value.abs();
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        if exponent > self.bias() {
            return sign | self.infinity();
        }
        let exponent = exponent.max(1 - self.bias());
        // In units of the last place. Rounding up may carry into the exponent, up to infinity.
        let units = magnitude * 2f64.powi(self.fraction_bits - exponent);
        let below = ((exponent + self.bias() - 1) as u16) << self.fraction_bits;
        sign | (below + units.round_ties_even() as u16)
    }

    pub fn widen(&self, bits: u16) -> f64 {
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let exponent = i32::from((bits & self.infinity()) >> self.fraction_bits);
        let magnitude = if bits & self.infinity() == self.infinity() {
            if fraction == 0 { f64::INFINITY } else { f64::NAN }
        } else {
            let implicit = u16::from(exponent > 0) << self.fraction_bits;
            let unit = 2f64.powi(exponent.max(1) - self.bias() - self.fraction_bits);
            f64::from(fraction + implicit) * unit
        };
        if bits >> 15 == 1 { -magnitude } else { magnitude }
    }

    /// Writes a value in the layout of FP64.
    pub fn write(&self, out: &mut Vec<u8>, bits: u16) {
        let value = self.widen(bits);
        let shortest = if value.is_finite() { self.shortest(bits, value) } else { value };
        shortest.write(out);
    }

    /// The decimal number with the fewest digits that is read as `bits`.
    fn shortest(&self, bits: u16, value: f64) -> f64 {
        for digits in 0..17 {
            // `-3.3895313892515355e38` is among the longest.
            let mut text = Cursor::new([0; 32]);
            let written = write!(text, "{value:.digits$e}").is_ok();
            let length = text.position() as usize;
            let short = std::str::from_utf8(&text.get_ref()[..length]).ok();
            let short = short.and_then(|text| text.parse().ok()).filter(|_| written);
            if let Some(short) = short.filter(|short| self.narrow(*short) == bits) {
                return short;
            }
        }
        value
    }
}

#[cfg(test)]
#[path = "half_tests.rs"]
mod tests;
