//! Unit tests of `health.rs`.

use super::*;
use crate::testing;
use trtserver_base::state::ServerPhase;

#[test]
fn health_by_phase() {
    let ctx = testing::context("");
    for (phase, live, ready) in [
        (ServerPhase::FailedToInitialize, Some(false), Some(false)),
        (ServerPhase::Initializing, Some(true), Some(false)),
        (ServerPhase::Ready, Some(true), Some(true)),
        (ServerPhase::Exiting, None, None),
    ] {
        ctx.state.set_phase(phase);
        assert_eq!(check_health(&ctx, "live").ok(), live, "{phase:?}");
        assert_eq!(check_health(&ctx, "ready").ok(), ready, "{phase:?}");
    }
    assert_eq!(check_health(&ctx, "live").unwrap_err().message, "Server exiting");
    ctx.state.set_phase(ServerPhase::Ready);
    let error = check_health(&ctx, "").unwrap_err();
    assert_eq!((error.code, &*error.message), (Code::Unknown, "unknown health mode ''"));
}
