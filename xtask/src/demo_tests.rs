//! Unit tests of `demo.rs`.

use super::*;

#[test]
fn wildcard_address_is_reached_by_loopback() {
    assert_eq!(reachable("0.0.0.0:8000"), "127.0.0.1:8000");
    assert_eq!(reachable("[::]:8000"), "127.0.0.1:8000");
    assert_eq!(reachable("127.0.0.1:9"), "127.0.0.1:9");
}

#[test]
fn port_in_use_becomes_zero() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    assert_eq!(free_or_any(taken.local_addr().unwrap().port()), 0);
}
