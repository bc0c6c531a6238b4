//! Unit tests of `compression.rs`.

use super::*;

#[test]
fn coding_that_the_client_accepts() {
    let coding = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, value.parse().unwrap());
        Compression::from_headers(&headers, 6).map(|compression| compression.coding)
    };
    assert_eq!(Compression::from_headers(&HeaderMap::new(), 6), None);
    assert_eq!(coding("identity, deflate, gzip"), Some(Coding::Gzip));
    assert_eq!(coding("deflate"), Some(Coding::Deflate));
    assert_eq!(coding("identity,snappy"), None);
}

#[test]
fn parts_are_read_in_order() {
    let parts = [&b"ab"[..], b"", b"c"].map(Bytes::from_static);
    let mut text = String::new();
    BufferReader(VecDeque::from(parts)).read_to_string(&mut text).unwrap();
    assert_eq!(text, "abc");
}
