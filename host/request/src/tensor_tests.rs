//! Unit tests of `tensor.rs`.

use super::*;

#[test]
fn element_count_rejects_negative_and_overflow() {
    for (shape, want) in [
        (&[][..], Some(1)),
        (&[0, 5], Some(0)),
        (&[2, 3], Some(6)),
        (&[-1, 3], None),
        (&[i64::MAX, 3], None),
    ] {
        assert_eq!(element_count(shape), want, "{}", ShapeText(shape));
    }
}
