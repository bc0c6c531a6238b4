//! Unit tests of `row_proof.rs`.

use super::*;

#[test]
fn elements_of_each_type_are_small_and_differ() {
    for (kind, size) in [(dtype::FP16, 2), (dtype::BF16, 2), (dtype::FP32, 4), (dtype::FP64, 8)] {
        let mut bytes = vec![0; 6 * size];
        fill(kind, &mut bytes, 1);
        let values: Vec<f64> = read_floats(kind, &bytes).collect();
        assert_eq!(values, [0.25, 0.375, 0.5, 0.625, 0.125, 0.25], "{kind}");
    }
    for (kind, size) in [(dtype::BOOL, 1), (dtype::INT16, 2), (dtype::INT32, 4), (dtype::INT64, 8)]
    {
        let mut bytes = vec![9; 3 * size];
        fill(kind, &mut bytes, 1);
        let firsts: Vec<u8> = bytes.chunks(size).map(|element| element[0]).collect();
        assert_eq!((firsts, bytes[size - 1] > 1), (vec![1, 0, 1], false), "{kind}");
    }
}

#[test]
fn halves_are_read() {
    let table = [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 2f64.powi(-24)), (0x7c00, f64::INFINITY)];
    for (bits, expected) in table {
        assert_eq!(read_half(bits), expected, "{bits:x}");
    }
    assert!(read_half(0x7e00).is_nan());
}

#[test]
fn rounding_is_not_a_difference() {
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let equal = |a: &[f32], b: &[f32]| are_equal(dtype::FP32, &bytes(a), &bytes(b));
    assert!(equal(&[1.0, f32::NAN, 0.0], &[1.0005, f32::NAN, 0.000_001]));
    assert!(!equal(&[1.0], &[1.01]) && !equal(&[1.0], &[f32::NAN]) && !equal(&[0.0], &[0.001]));
    assert!(!equal(&[1.0], &[1.0, 1.0]));
    assert!(are_equal(dtype::INT32, &[1, 0, 0, 0], &[1, 0, 0, 0]));
    assert!(!are_equal(dtype::INT32, &[1, 0, 0, 0], &[2, 0, 0, 0]));
}
