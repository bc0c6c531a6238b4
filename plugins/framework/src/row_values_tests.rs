//! Unit tests of `row_values.rs`.

use super::*;

#[test]
fn elements_of_each_type_are_small_and_differ() {
    for (kind, size) in [(dtype::FP16, 2), (dtype::BF16, 2), (dtype::FP32, 4), (dtype::FP64, 8)] {
        let mut bytes = vec![0; 6 * size];
        fill(kind, &mut bytes, 1);
        let values: Vec<f64> = numbers(kind, &bytes).collect();
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

#[test]
fn distances_are_parts_of_the_size() {
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (one, other, expected) in [
        (&[1.0, -2.0][..], &[1.0, -2.0][..], 0.0),
        (&[0.0, 0.0], &[0.0, 0.0], 0.0),
        (&[1.0, 3.0], &[1.0, 2.0], 0.25),
        (&[0.0, 0.0], &[1.0, 1.0], 1.0),
        (&[1e-9], &[0.0], 1.0),
        (&[nan, inf], &[nan, inf], 0.0),
        (&[nan, 1.0], &[3.0, 1.0], 0.75),
        (&[inf], &[-inf], 1.0),
        (&[], &[], 0.0),
    ] {
        let found = relative_distance(dtype::FP32, &floats(one), &floats(other));
        assert_eq!(found, expected, "{one:?} {other:?}");
    }
}

#[test]
fn integers_have_a_sign_and_strings_no_number() {
    for (kind, bytes, expected) in [
        (dtype::INT8, &[0xff, 2][..], &[-1.0, 2.0][..]),
        (dtype::UINT8, &[0xff], &[255.0]),
        (dtype::BOOL, &[1, 0], &[1.0, 0.0]),
        (dtype::INT16, &[0xfe, 0xff], &[-2.0]),
        (dtype::INT64, &[0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[-3.0]),
        (dtype::UINT32, &[0xff, 0xff, 0xff, 0xff], &[4_294_967_295.0]),
        (dtype::STRING, &[1, 2, 3], &[]),
    ] {
        assert_eq!(numbers(kind, bytes).collect::<Vec<_>>(), expected, "{kind}");
    }
}
