//! The model repository of the protocol tests.

use crate::repository::probe;
use crate::server::Server;

/// All models of `tests/models` except `scalar`, which is refused; `digits`; and `echo`, `slow`
/// (0.3 s) and `fails` of the test plugin.
pub fn every_model() -> Server {
    Server::new()
        .copy_models("tests/models")
        .without("scalar")
        .copy_model("examples/models/digits")
        .model("echo", probe("echo", &[]))
        .model("slow", probe("slow", &[("delay_ms", "300")]))
        .model("fails", probe("fails", &[("fail", "the probe was told to fail")]))
}
