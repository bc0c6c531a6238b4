//! Unit tests of `tls_absent.rs`.

use super::*;

#[test]
fn a_listener_with_tls_is_refused_and_the_reason_named() {
    let files = TlsFiles { certificate: "/c.pem".into(), key: "/k.pem".into(), client_ca: None };
    let listener = TlsListener { name: "http", wire: Wire::Http1, files: &files };
    let error = TlsListeners::open(&[listener]).err().map(|e| e.message).unwrap_or_default();
    assert!(error.starts_with("http listener: TLS certificate /c.pem cannot be used"), "{error}");
    assert!(error.contains("built without TLS"), "{error}");
    let (none, _) = TlsListeners::open(&[]).unwrap();
    assert!(none.endpoint("http").is_none() && none.stats().is_empty());
}
