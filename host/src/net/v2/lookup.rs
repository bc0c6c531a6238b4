//! From a model's name and a version's text to what serves them.

use crate::error::{Error, Result};
use crate::net::context::{Context, v2_missing};
use crate::repository::Served;
use crate::state::Phase;
use std::sync::Arc;

/// What is known of `name`; an empty version means the highest one.
pub fn served(ctx: &Context, name: &str, version: &str) -> Result<Arc<Served>> {
    ctx.require_ready()?;
    serving(ctx, name, version)
}

/// The same for inference, which may go on while the server stops: [`Context::require_open`] says for whom.
pub fn serving(ctx: &Context, name: &str, version: &str) -> Result<Arc<Served>> {
    if ctx.state.phase() != Phase::Exiting {
        ctx.require_ready()?;
    }
    let version = parse_version(version)?;
    ctx.models.find(name, version).map_err(|missing| match ctx.require_ready() {
        Ok(()) => v2_missing(missing),
        // The server began to stop after the first look, and its models are gone for that reason.
        Err(stopping) => stopping,
    })
}

/// A version as it stands in a request; `None` leaves the choice to the server.
pub fn parse_version(text: &str) -> Result<Option<i64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let start = format!("failed to get model version from specified version string '{text}'");
    let end = "version should be an integral value > 0";
    match text.parse::<i64>() {
        Ok(number) if number >= 0 => Ok(Some(number)),
        Ok(_) => Err(Error::invalid(format!("{start}, {end}"))),
        // The parser that every release has used, by name; clients match on the whole text.
        Err(_) => Err(Error::invalid(format!("{start} (details: stol), {end}"))),
    }
}

/// Refuses models that answer as often as they like, where the call can carry one answer only.
pub fn require_unary(served: &Served, refusal: &str) -> Result<()> {
    if served.decoupled() { Err(Error::unsupported(refusal)) } else { Ok(()) }
}

#[cfg(test)]
#[path = "lookup_tests.rs"]
mod tests;
