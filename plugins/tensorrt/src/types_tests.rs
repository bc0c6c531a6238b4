//! Unit tests of `types.rs`.

use super::*;

#[test]
fn each_io_type_has_one_of_the_interface() {
    let known = [
        (0, dtype::FP32),
        (1, dtype::FP16),
        (2, dtype::INT8),
        (3, dtype::INT32),
        (4, dtype::BOOL),
        (5, dtype::UINT8),
        (6, dtype::UINT8),
        (7, dtype::BF16),
        (8, dtype::INT64),
    ];
    for (kind, expected) in known {
        assert_eq!(to_element(kind), Element::Known(expected), "type {kind}");
    }
}

#[test]
fn types_below_a_byte_are_named() {
    assert_eq!(to_element(9), Element::Foreign("INT4".to_owned()));
    assert_eq!(to_element(99), Element::Foreign("type 99 of TensorRT".to_owned()));
}
