//! Tests of the classification of result codes.

use super::{NO_DEVICE, NOT_READY, OUT_OF_MEMORY, SUCCESS, is_sticky};

#[test]
fn errors_that_end_the_context_are_sticky() {
    // ECC, NVLink, illegal address, launch timeout, destroyed context, assert, launch failed.
    for code in [214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719] {
        assert!(is_sticky(code), "{code}");
    }
    // Invalid value and handle, resources of a launch, peer access.
    for code in [SUCCESS, 1, OUT_OF_MEMORY, NO_DEVICE, 201, 400, NOT_READY, 701, 704, 801] {
        assert!(!is_sticky(code), "{code}");
    }
}
