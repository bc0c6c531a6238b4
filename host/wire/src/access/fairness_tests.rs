//! Unit tests of `fairness.rs`.

use super::*;
use std::collections::BTreeMap;

fn lookup(source: ClientSource) -> ClientLookup {
    let weights = BTreeMap::from([("heavy".to_owned(), 5)]);
    ClientLookup::new(&FairnessSettings { source, weights })
}

fn headers(value: &[u8]) -> HeaderMap {
    let value = http::HeaderValue::from_bytes(value).unwrap();
    HeaderMap::from_iter([(http::HeaderName::from_static("x-client"), value)])
}

#[test]
fn header_tells_clients_apart() {
    let lookup = lookup(ClientSource::Header("x-client".to_owned()));
    let client = |value: &[u8]| lookup.by_header(&headers(value)).unwrap();
    assert_eq!((client(b"heavy").weight, client(b"other").weight), (5, 1));
    assert_eq!(client(b"other").key, client(b"other").key);
    assert_ne!(client(b"other").key, client(b"another").key);
    let unnamed = lookup.clients.unnamed().key;
    assert_eq!(lookup.by_header(&HeaderMap::new()).unwrap().key, unnamed);
    assert_eq!(client(b"").key, unnamed);
    assert_ne!(client(b"\xff\xfe").key, unnamed);
    assert!(lookup.by_name("heavy").is_none());
}

#[test]
fn names_tell_clients_apart() {
    let lookup = lookup(ClientSource::AuthNames);
    assert_eq!(lookup.by_name("heavy").unwrap().weight, 5);
    assert!(lookup.by_header(&headers(b"heavy")).is_none());
}
