//! Unit tests of `types.rs`.

use super::*;

#[test]
fn types_of_both_sides_correspond() {
    for (ov, own) in ROWS {
        assert_eq!(to_element(ov), Element::Known(own));
        assert_eq!(from_dtype(own), Some(ov));
    }
    assert_eq!(from_dtype(dtype::STRING), None);
}

#[test]
fn other_types_are_named() {
    for (ov, expected) in [
        (0, "known in a run only"),
        (6, "less than 8 bits"),
        (14, "less than 8 bits"),
        (21, "8-bit float"),
        (23, "strings, which OpenVINO's C interface cannot return"),
        (25, "8-bit float"),
        (99, "element type 99"),
    ] {
        let Element::Foreign(name) = to_element(ov) else { panic!("{ov}") };
        assert!(name.contains(expected), "{name}");
    }
}
