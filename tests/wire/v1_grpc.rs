//! v1 over gRPC with the client of 2020: unary calls, streams, and requests that only a plain stub can send.

use trtserver_tests::{every_model, python_v1};

#[test]
fn v1_client() {
    let server = every_model().start();
    python_v1(&server, "v1_grpc.py", &[]);
    assert!(server.stop().success());
}
