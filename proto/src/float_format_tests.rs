//! Unit tests of `float_format.rs`.

use super::{format_f32, format_f64};

#[test]
fn looks_like_general_format() {
    let table = [
        (0.0, "0"),
        (1.0, "1"),
        (-0.5, "-0.5"),
        (0.1, "0.1"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (16777216.0, "16777216"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (f32::INFINITY, "inf"),
        (f32::NEG_INFINITY, "-inf"),
        (f32::NAN, "nan"),
    ];
    for (value, text) in table {
        assert_eq!(format_f32(value), text);
    }
    assert_eq!(format_f64(1e6), "1000000");
    assert_eq!(format_f64(1e15), "1e+15");
    assert_eq!(format_f64(0.1 + 0.2), "0.30000000000000004");
}
