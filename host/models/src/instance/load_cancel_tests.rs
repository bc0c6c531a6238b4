//! Unit tests of `load_cancel.rs`.

use super::*;
use trtserver_request::testing::request;

#[test]
fn cancelled_load_cancels_its_requests() {
    let cancel = LoadCancel::default();
    let (first, later) = (request("a").0, request("b").0);
    let flag = |request: &InferRequest| request.responder.cancel_token.is_cancelled();
    cancel.executes(std::slice::from_ref(&first));
    assert!(!cancel.is_cancelled() && !flag(&first));
    cancel.cancel();
    assert!(cancel.is_cancelled() && flag(&first));
    cancel.executes(std::slice::from_ref(&later));
    assert!(flag(&later));
}
