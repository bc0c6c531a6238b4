//! Unit tests of `half.rs`, over all values of both formats.

use super::*;

fn text(format: &HalfFloat, bits: u16) -> String {
    let mut out = Vec::new();
    format.write(&mut out, bits);
    String::from_utf8(out).unwrap()
}

#[test]
fn every_value_reads_back_from_its_text() {
    for format in [FP16, BF16] {
        let longest = (0..=u16::MAX).map(|bits| {
            let text = text(&format, bits);
            let number: f64 = text.parse().unwrap();
            match number.is_nan() {
                true => assert!(format.widen(bits).is_nan(), "{text}"),
                false => assert_eq!(format.narrow(number), bits, "{text}"),
            }
            text.len() + 1
        });
        // `encode::max_text` allows so many bytes for a value and its comma.
        let most = if format.fraction_bits == 10 { 14 } else { 26 };
        assert!(longest.max().unwrap() <= most);
    }
}

#[test]
fn texts_are_short() {
    for (format, number, want) in [
        (FP16, 0.1, "0.1"),
        (FP16, 1.0, "1.0"),
        (FP16, -2.5, "-2.5"),
        (FP16, 65504.0, "65500.0"),
        (FP16, 1e9, "Infinity"),
        (FP16, 6e-8, "6e-8"),
        (FP16, -0.0, "-0.0"),
        (FP16, f64::NAN, "NaN"),
        (BF16, 0.1, "0.1"),
        (BF16, 3.39e38, "3.39e38"),
        (BF16, f64::NEG_INFINITY, "-Infinity"),
        (BF16, 257.0, "256.0"),
    ] {
        assert_eq!(text(&format, format.narrow(number)), want, "{number}");
    }
}

/// BF16 is the upper half of FP32: of FP32's values, those in the middle between two of BF16 go to
/// the even one.
#[test]
fn ties_go_to_the_even_value() {
    for (number, want) in [(1.0, 0x3f80), (1.00390625, 0x3f80), (1.01171875, 0x3f82)] {
        assert_eq!(BF16.narrow(number), want, "{number}");
    }
    for (number, want) in [(65519.9, 0x7bff), (65520.0, 0x7c00), (2f64.powi(-25), 0), (1e-300, 0)] {
        assert_eq!(FP16.narrow(number), want, "{number}");
    }
    assert_eq!(FP16.narrow(1.5 * 2f64.powi(-24)), 2);
}
