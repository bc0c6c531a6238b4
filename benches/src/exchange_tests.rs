//! Unit tests of `exchange.rs`.

use super::*;

#[test]
fn wrong_response_is_detected() {
    let ends = Expect::Ends(Bytes::from_static(b"cd"));
    assert!(ends.check(b"abcd").is_ok());
    assert!(ends.check(b"abce").unwrap_err().contains("4 bytes"));
    let numbers = Expect::Numbers(vec![1.0, 2.5]);
    assert!(numbers.check(br#"{"outputs":[{"data":[1,2.5]}]}"#).is_ok());
    assert!(numbers.check(br#"{"outputs":[{"data":[1.0,2]}]}"#).is_err());
    assert!(numbers.check(br#"{"error":"no"}"#).is_err());
}
