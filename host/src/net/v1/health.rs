//! Live and ready (contract/v1 §3.3).

use crate::error::{Code, Error, Result};
use crate::net::context::Context;

/// The answer to `mode`. A server on its way out answers nothing but that.
pub fn answer(ctx: &Context, mode: &str) -> Result<bool> {
    ctx.refuse_when_exiting()?;
    match mode {
        "live" => Ok(ctx.state.is_live()),
        "ready" => Ok(ctx.is_ready()),
        _ => Err(Error::new(Code::Unknown, format!("unknown health mode '{mode}'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::v1::testing;
    use crate::state::Phase;

    #[test]
    fn by_phase() {
        let ctx = testing::context("");
        for (phase, live, ready) in [
            (Phase::FailedToInitialize, Some(false), Some(false)),
            (Phase::Initializing, Some(true), Some(false)),
            (Phase::Ready, Some(true), Some(true)),
            (Phase::Exiting, None, None),
        ] {
            ctx.state.set_phase(phase);
            assert_eq!(answer(&ctx, "live").ok(), live, "{phase:?}");
            assert_eq!(answer(&ctx, "ready").ok(), ready, "{phase:?}");
        }
        assert_eq!(answer(&ctx, "live").unwrap_err().message, "Server exiting");
        ctx.state.set_phase(Phase::Ready);
        let error = answer(&ctx, "").unwrap_err();
        assert_eq!((error.code, &*error.message), (Code::Unknown, "unknown health mode ''"));
    }
}
