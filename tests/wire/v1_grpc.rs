//! The protocol of 2019 over gRPC, with its own client: calls, streams, and what only a bare stub sends.

use trtserver_tests::{every_model, python_v1};

#[test]
fn v1_client() {
    let server = every_model().start();
    python_v1(&server, "v1_grpc.py", &[]);
    assert!(server.stop().success());
}
