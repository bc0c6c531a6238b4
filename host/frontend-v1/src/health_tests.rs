//! Unit tests of `health.rs`.

use super::*;
use crate::testing;
use trtserver_base::state::Phase;

#[test]
fn health_by_phase() {
    let ctx = testing::context("");
    for (phase, live, ready) in [
        (Phase::FailedToInitialize, Some(false), Some(false)),
        (Phase::Initializing, Some(true), Some(false)),
        (Phase::Ready, Some(true), Some(true)),
        (Phase::Exiting, None, None),
    ] {
        ctx.state.set_phase(phase);
        assert_eq!(check(&ctx, "live").ok(), live, "{phase:?}");
        assert_eq!(check(&ctx, "ready").ok(), ready, "{phase:?}");
    }
    assert_eq!(check(&ctx, "live").unwrap_err().message, "Server exiting");
    ctx.state.set_phase(Phase::Ready);
    let error = check(&ctx, "").unwrap_err();
    assert_eq!((error.code, &*error.message), (Code::Unknown, "unknown health mode ''"));
}
