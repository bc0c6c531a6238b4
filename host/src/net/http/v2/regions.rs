//! Registering and status of shared-memory regions over HTTP.

use super::json;
use super::json::access::{member, text, unsigned};
use super::json::write::array;
use super::management_json::nested;
use crate::error::{Error, Result};
use crate::net::context::Context;
use crate::net::v2::regions;
use crate::shared_memory::Kind;

/// Registers a region as the body says.
pub fn register(ctx: &Context, kind: Kind, name: &str, body: &[u8]) -> Result<()> {
    regions::require_allowed(ctx)?;
    if name.is_empty() {
        let kind = if kind == Kind::System { "system" } else { "cuda" };
        return Err(Error::invalid(format!(
            "'region name' is necessary to register {kind} shared memory region"
        )));
    }
    if kind == Kind::Cuda {
        return regions::register_cuda(ctx, name);
    }
    let ([key, offset, byte_size], _) = json::pick(body, ["key", "offset", "byte_size"])?;
    let key = text("key", member(&key, "key")?)?;
    let offset = offset.map_or(Ok(0), |offset| unsigned("offset", &offset))?;
    let byte_size = unsigned("byte_size", member(&byte_size, "byte_size")?)?;
    regions::register_system(ctx, name, &key, offset, byte_size)
}

/// A region, or all of the kind if the name is empty.
pub fn status(ctx: &Context, kind: Kind, name: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match kind {
        Kind::System => array(&mut out, regions::system_status(ctx, name)?, |out, region| {
            nested(out, |o| {
                o.string("name", &region.name);
                o.string("key", &region.key);
                o.plain("offset", region.offset);
                o.plain("byte_size", region.byte_size);
            });
        }),
        Kind::Cuda => array(&mut out, regions::cuda_status(ctx, name)?, |out, region| {
            nested(out, |o| {
                o.string("name", &region.name);
                o.plain("device_id", region.device_id);
                o.plain("byte_size", region.byte_size);
            });
        }),
    }
    Ok(out)
}
