//! Unit tests of `infer_response.rs`.

use super::*;

#[test]
fn header_numbers() {
    for n in (0..2000).chain([usize::MAX]) {
        assert_eq!(number(n), HeaderValue::from(n));
    }
}
