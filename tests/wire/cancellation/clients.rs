//! Cancellation by the official clients: deadline, cancel, disconnect.

use trtserver_tests::{Running, Server, probe, python_v1, python_v2};

/// `stuck` executes one request at a time, each until it is cancelled, at most ten seconds.
fn server() -> Running {
    let stuck = probe("stuck", &[("until_cancelled", "true")]);
    Server::new().model("stuck", stuck).model("echo", probe("echo", &[])).start()
}

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
