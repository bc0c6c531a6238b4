//! The server that the protocol tests share.

use crate::repository::probe;
use crate::server::Server;

/// All small ONNX models of the checkout but `scalar`, which no server may serve, the handwritten digits, and three of the test plugin: `echo`, `slow`
/// (a third of a second) and `fails`.
pub fn every_model() -> Server {
    Server::new()
        .copy_models("tests/models")
        .without("scalar")
        .copy_model("examples/models/digits")
        .model("echo", probe("echo", &[]))
        .model("slow", probe("slow", &[("delay_ms", "300")]))
        .model("fails", probe("fails", &[("fail", "the probe was told to fail")]))
}
