//! Unit tests of `demo.rs`.

use super::*;

#[test]
fn a_client_goes_to_this_machine_when_the_server_listens_everywhere() {
    assert_eq!(reachable("0.0.0.0:8000"), "127.0.0.1:8000");
    assert_eq!(reachable("[::]:8000"), "127.0.0.1:8000");
    assert_eq!(reachable("127.0.0.1:9"), "127.0.0.1:9");
}

#[test]
fn a_taken_port_is_not_asked_for() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    assert_eq!(free_or_any(taken.local_addr().unwrap().port()), 0);
}
