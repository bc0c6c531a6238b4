//! v2 (Open Inference Protocol) over gRPC with the current client: blocking, asynchronous, streams,
//! a plain stub.

use trtserver_tests::{every_model, python_v2};

#[test]
fn v2_client() {
    let server = every_model().start();
    python_v2(&server, "v2_grpc.py", &[]);
    assert!(server.stop().success());
}
