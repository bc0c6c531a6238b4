//! Unit tests of `v2.rs`.

use super::*;

#[test]
fn a_class_is_taken_apart() {
    let class = best("0.998000:7:seven").unwrap();
    assert_eq!((class.label.as_str(), class.score), ("seven", 0.998));
    assert!(best("0.998000:7").is_err());
}

#[test]
fn a_string_that_is_cut_short_is_none() {
    assert_eq!(first_string(b"\x02\0\0\0abc").as_deref(), Some("ab"));
    assert_eq!(first_string(b"\x04\0\0\0abc"), None);
    assert_eq!(first_string(b"\x04\0"), None);
}
