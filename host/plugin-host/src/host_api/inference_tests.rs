//! Unit tests of `inference.rs`: lengths that a backend lies about are refused before anything is
//! read.

use super::*;

#[test]
fn lists_have_an_address_and_fit_into_memory() {
    let byte = 7u8;
    let lists: [(*const u8, u64, bool); 6] = [
        (&raw const byte, 1, true),
        (&raw const byte, 0, true),
        (std::ptr::null(), 0, true),
        (std::ptr::null(), 1, false),
        (&raw const byte, 1 << 63, false),
        (&raw const byte, u64::MAX, false),
    ];
    for (p, n, allowed) in lists {
        // SAFETY: what is allowed is valid.
        let list = unsafe { slice(p, n, "list") };
        assert_eq!(list.is_ok(), allowed, "{n} elements at {p:?}");
    }
    // The number of elements fits, their size does not.
    let shape = 1i64;
    // SAFETY: the list is refused for its size before its memory is read.
    let error = unsafe { slice(&raw const shape, 1u64 << 60, "shape") }.unwrap_err();
    assert!(error.message.starts_with("shape: 1152921504606846976 elements of 8"), "{error}");
}
