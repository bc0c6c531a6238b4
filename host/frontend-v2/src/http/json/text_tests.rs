//! Unit tests of `text.rs`.

use super::*;
use proptest::prelude::*;

fn text(number: impl Number) -> String {
    let mut out = Vec::new();
    number.write(&mut out);
    String::from_utf8(out).unwrap()
}

/// The shortest digits of the standard library in Triton's layout.
fn reference(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap();
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap();
    let point = exponent + 1;
    let number = match point {
        1..=21 => {
            let mut digits = digits;
            while digits.len() < point as usize + 1 {
                digits.push('0');
            }
            let (before, after) = digits.split_at(point as usize);
            format!("{before}.{after}")
        }
        -5..=0 => format!("0.{}{digits}", "0".repeat(-point as usize)),
        _ => format!("{mantissa}e{exponent}"),
    };
    sign.to_owned() + &number
}

/// Of two texts that are equally short and near, either may be written.
fn layout(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "0")
}

fn check_f32(value: f32) {
    let got = text(value);
    let double: f64 = got.parse().unwrap();
    assert_eq!((double as f32).to_bits(), value.to_bits(), "{got}");
    if value.abs().to_bits() != MISREAD {
        assert_eq!(layout(&got), layout(&reference(&format!("{value:e}"))));
        assert_eq!(got.parse::<f32>().unwrap().to_bits(), value.to_bits());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn fp32_reads_back_and_has_the_fewest_digits(bits: u32, scaled in -1e22f32..1e22) {
        for value in [f32::from_bits(bits), scaled, scaled * 1e-22] {
            if value.is_finite() {
                check_f32(value);
            }
        }
    }

    #[test]
    fn fp64_reads_back_and_has_the_fewest_digits(bits: u64, scaled in -1e23f64..1e23) {
        for value in [f64::from_bits(bits), scaled, scaled * 1e-23] {
            if value.is_finite() {
                let got = text(value);
                prop_assert_eq!(got.parse::<f64>().unwrap().to_bits(), value.to_bits());
                prop_assert_eq!(layout(&got), layout(&reference(&format!("{value:e}"))));
            }
        }
    }

    #[test]
    fn integers_are_decimal(signed: i64, unsigned: u64) {
        prop_assert_eq!(text(signed), signed.to_string());
        prop_assert_eq!(text(signed as i8), (signed as i8).to_string());
        prop_assert_eq!(text(unsigned), unsigned.to_string());
        prop_assert_eq!(text(unsigned as u16), (unsigned as u16).to_string());
    }
}

#[test]
fn layout_of_fp64() {
    for (value, want) in [
        (1e15, "1000000000000000.0"),
        (1e16, "10000000000000000.0"),
        (-1.5e17, "-150000000000000000.0"),
        (1e20, "100000000000000000000.0"),
        (1.25e21, "1.25e21"),
        (-1e22, "-1e22"),
        (f64::MAX, "1.7976931348623157e308"),
        (1e-5, "0.00001"),
        (-9.75e-6, "-0.00000975"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (123456789.125, "123456789.125"),
        (-0.0, "-0.0"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(text(value), want);
        assert!(value.is_nan() || want.parse::<f64>().unwrap() == value);
    }
}

#[test]
fn layout_of_fp32() {
    for (value, want) in [
        (0.1f32, "0.1"),
        (16_777_216.0, "16777216.0"),
        (123_456_789.0, "123456790.0"),
        (1e13, "10000000000000.0"),
        (-1.234_567_9e20, "-123456790000000000000.0"),
        (1e21, "1e21"),
        (1e-6, "0.000001"),
        (-1e-7, "-1e-7"),
        (f32::MAX, "3.4028235e38"),
        (f32::from_bits(1), "1e-45"),
        (-0.0, "-0.0"),
        (f32::NAN, "NaN"),
        (f32::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(text(value), want);
    }
}

/// Two roundings, to FP64 and to FP32, differ from one for the shortest digits of this number.
#[test]
fn shortest_digits_that_doubles_misread_are_not_written() {
    let value = f32::from_bits(MISREAD);
    let shortest: f64 = format!("{value:e}").parse().unwrap();
    assert_ne!(shortest as f32, value);
    check_f32(value);
    check_f32(-value);
}
