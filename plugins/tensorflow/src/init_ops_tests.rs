//! Unit tests of `init_ops.rs`.

use super::*;

#[test]
fn names_are_a_list_of_texts() {
    assert_eq!(names(br#"{"init_ops": ["init", "scope/fill"]}"#).unwrap(), ["init", "scope/fill"]);
    for text in [r#"{"init_ops": "init"}"#, r#"{"init_ops": [1]}"#, "[]", "{}"] {
        assert_eq!(
            names(text.as_bytes()).unwrap_err(),
            r#"expected {"init_ops": ["operation", ...]}"#
        );
    }
    assert!(names(b"{").is_err());
}
