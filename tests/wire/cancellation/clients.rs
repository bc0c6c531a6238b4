//! Real clients take requests back: by deadlines, by cancelling, by hanging up.

use trtserver_tests::{Running, Server, probe, python_v1, python_v2};

/// `stuck` executes one request at a time, and each until it is cancelled; ten seconds at most.
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

/// They have no timeouts: the bare stub does it.
#[test]
fn v1_client() {
    let server = server();
    python_v1(&server, "v1_cancellation.py", &[]);
    assert!(server.stop().success());
}
