//! Unit tests of `types.rs`.

use super::*;
use trtserver_plugin_api::abi::types::dtype;

#[test]
fn names_and_sizes() {
    assert_eq!((type_name(dtype::BF16), type_size(dtype::BF16)), ("TYPE_BF16".into(), 2));
    assert_eq!((type_name(dtype::STRING), type_size(dtype::STRING)), ("TYPE_STRING".into(), 0));
    assert_eq!((type_name(99), type_size(99)), ("TYPE_INVALID".into(), 0));
}

#[test]
fn shapes() {
    assert_eq!(shape_text(&[-1, 16]), "[-1,16]");
    assert_eq!(shape_text(&[]), "[]");
    assert_eq!(element_count(&[]), Some(1));
    assert_eq!(element_count(&[3, 0, 7]), Some(0));
    assert_eq!(element_count(&[2, -1]), None);
    assert_eq!(element_count(&[i64::MAX, 4]), None);
}
