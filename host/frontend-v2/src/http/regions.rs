//! Registering, unregistering and status of shared-memory regions over HTTP.

use super::json;
use super::json::Value;
use super::json::access::{member, text, unsigned};
use super::json::write::array;
use super::management_json::nested;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use trtserver_base::error::{Error, Result};
use trtserver_request::shared_memory::Kind;
use trtserver_wire::context::Context;
use trtserver_wire::regions;
use trtserver_wire::shared_memory::CudaMemory;

/// Registers a region as the body says.
pub async fn register(ctx: &Context, kind: Kind, name: &str, body: &[u8]) -> Result<()> {
    regions::require_allowed(ctx)?;
    if name.is_empty() {
        let kind = if kind == Kind::System { "system" } else { "cuda" };
        return Err(Error::invalid(format!(
            "'region name' is necessary to register {kind} shared memory region"
        )));
    }
    if kind == Kind::Cuda {
        return register_cuda(ctx, name, body).await;
    }
    let [key, offset, byte_size] = json::pick(body, ["key", "offset", "byte_size"])?;
    let key = text("key", member(&key, "key")?)?;
    let offset = offset.map_or(Ok(0), |offset| unsigned("offset", &offset))?;
    let byte_size = unsigned("byte_size", member(&byte_size, "byte_size")?)?;
    regions::register_system(ctx, name, &key, offset, byte_size)
}

async fn register_cuda(ctx: &Context, name: &str, body: &[u8]) -> Result<()> {
    let (handle, device_id, byte_size) = {
        let fields = ["raw_handle", "device_id", "byte_size"];
        let [raw_handle, device_id, byte_size] = json::pick(body, fields)?;
        let b64 = match member(&raw_handle, "raw_handle")? {
            Value::Object(object) => object.pick(["b64"])?,
            _ => [None],
        };
        let [b64] = b64;
        let b64 = text("b64", member(&b64, "b64")?)?;
        let handle = STANDARD
            .decode(&*b64)
            .map_err(|e| Error::invalid(format!("Unable to parse 'b64': it is not base64: {e}")))?;
        let device_id = unsigned("device_id", member(&device_id, "device_id")?)?;
        (handle, device_id, unsigned("byte_size", member(&byte_size, "byte_size")?)?)
    };
    let memory = CudaMemory { handle: &handle, device_id, byte_size };
    regions::register_cuda(ctx, name, memory).await
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
