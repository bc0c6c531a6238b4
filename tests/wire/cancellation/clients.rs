//! Cancellation by the official clients: deadline, cancel, disconnect.

use super::server;
use trtserver_tests::{python_v1, python_v2};

#[test]
fn v2_clients() {
    let server = server();
    python_v2(&server, "v2_cancellation.py", &[]);
    assert!(server.stop().success());
}

/// The v1 client has no timeouts, so the plain stub is used.
#[test]
fn v1_client() {
    let server = server();
    python_v1(&server, "v1_cancellation.py", &[]);
    assert!(server.stop().success());
}
