//! Liveness and readiness (docs/protocol/v1.md §3.3).

use trtserver_base::error::{Code, Error, Result};
use trtserver_wire::context::FrontendContext;

/// The health for `mode`; an error while the server drains.
pub fn check_health(ctx: &FrontendContext, mode: &str) -> Result<bool> {
    ctx.refuse_when_exiting()?;
    match mode {
        "live" => Ok(ctx.state.is_live()),
        "ready" => Ok(ctx.is_ready()),
        _ => Err(Error::new(Code::Unknown, format!("unknown health mode '{mode}'"))),
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
