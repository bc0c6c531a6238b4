//! Unit tests of `types.rs`.

use super::*;

#[test]
fn every_type_of_the_interface_has_one_of_tensorflow() {
    for number in dtype::BOOL..=dtype::BF16 {
        let element = to_element(number).unwrap();
        assert_eq!(to_dtype(element), number);
        assert_eq!(element_name(element), type_name(number));
    }
    assert_eq!((to_element(dtype::INVALID), to_dtype(UNKNOWN)), (None, dtype::INVALID));
}

#[test]
fn other_types_are_named() {
    for (number, name) in [
        (8, "complex64"),
        (11, "qint8 (quantised)"),
        (20, "resource"),
        (21, "variant"),
        (101, "a reference to TYPE_FP32"),
        (999, "TensorFlow type 999"),
    ] {
        assert_eq!((to_dtype(number), element_name(number).as_str()), (dtype::INVALID, name));
    }
}
