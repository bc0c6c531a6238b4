//! Finds the open version that a name and a version text select.

use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::state::ServerPhase;
use trtserver_models::{FoundVersion, OpenVersion};
use trtserver_wire::context::{FrontendContext, v2_missing};

/// The open version of model `name` on a ready server; an empty `version` selects the default one.
pub fn find_ready(ctx: &FrontendContext, name: &str, version: &str) -> Result<Arc<OpenVersion>> {
    ctx.require_ready()?;
    Ok(find_for_inference(ctx, name, version)?.into_served())
}

/// The same for inference, which some sequences may continue while the server drains: see
/// [`FrontendContext::require_open`].
pub fn find_for_inference(
    ctx: &FrontendContext,
    name: &str,
    version: &str,
) -> Result<FoundVersion> {
    if ctx.state.phase() != ServerPhase::Exiting {
        ctx.require_ready()?;
    }
    let version = parse_version(version)?;
    ctx.models.find_for_inference(name, version).map_err(|missing| match ctx.require_ready() {
        Ok(()) => v2_missing(missing),
        // The drain has unloaded the model.
        Err(_) => stopping_error(),
    })
}

/// The error for new inference requests while the server drains.
pub fn stopping_error() -> Error {
    Error::unavailable(
        "Server is stopping, scheduler for model has stopped accepting new inference requests",
    )
}

/// Parses a version; `None` is the default version.
pub fn parse_version(text: &str) -> Result<Option<i64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let start = format!("failed to get model version from specified version string '{text}'");
    let end = "version should be an integral value > 0";
    // As C's `strtol`: what follows the number is ignored, so that `1.0` is version 1.
    let number = text.trim_ascii_start();
    let sign = usize::from(number.starts_with(['-', '+']));
    let digits = number.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    match number[..sign + digits].parse::<i64>() {
        Ok(number) if number >= 0 => Ok(Some(number)),
        Ok(_) => Err(Error::invalid(format!("{start}, {end}"))),
        // Clients match the whole text, including the name of Triton's parser.
        Err(_) => Err(Error::invalid(format!("{start} (details: stol), {end}"))),
    }
}

/// Refuses decoupled models on endpoints that carry exactly one response.
pub fn require_unary(served: &OpenVersion, refusal: &str) -> Result<()> {
    if served.decoupled() { Err(Error::unsupported(refusal)) } else { Ok(()) }
}

#[cfg(test)]
#[path = "lookup_tests.rs"]
mod tests;
