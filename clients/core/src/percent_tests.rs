//! Unit tests of `percent.rs`.

use super::{encode_path, encode_segment};

#[test]
fn only_what_must_be_encoded_is_encoded() {
    let name = "a-Z.0_~/ ?#\"<>`%\u{7f}\té";
    assert_eq!(encode_segment(name), "a-Z.0_~%2F%20%3F%23%22%3C%3E%60%25%7F%09%C3%A9");
    assert_eq!(encode_path(name), "a-Z.0_~/%20%3F%23%22%3C%3E%60%%7F%09%C3%A9");
}
