//! Unit tests of `v2.rs`.

use super::*;

#[test]
fn class_is_parsed() {
    let class = best("0.998000:7:seven").unwrap();
    assert_eq!((class.label.as_str(), class.score), ("seven", 0.998));
    assert!(best("0.998000:7").is_err());
}

#[test]
fn truncated_string_is_rejected() {
    assert_eq!(first_string(b"\x02\0\0\0abc").as_deref(), Some("ab"));
    assert_eq!(first_string(b"\x04\0\0\0abc"), None);
    assert_eq!(first_string(b"\x04\0"), None);
}
