//! Registering, unregistering and status of shared-memory regions over HTTP.

use super::base64_text::decode_base64;
use super::json;
use super::json::JsonValue;
use super::json::access::{expect_text, expect_unsigned};
use super::json::write::write_array;
use super::management_json::write_nested_object;
use trtserver_base::error::{Error, Result};
use trtserver_request::shared_memory::RegionKind;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::regions;
use trtserver_wire::shared_memory::CudaMemory;

/// Registers a region as the body says.
pub async fn register_region(
    ctx: &FrontendContext,
    kind: RegionKind,
    name: &str,
    body: &[u8],
) -> Result<()> {
    regions::require_allowed(ctx)?;
    if name.is_empty() {
        let kind = if kind == RegionKind::System { "system" } else { "cuda" };
        return Err(Error::invalid(format!(
            "'region name' is necessary to register {kind} shared memory region"
        )));
    }
    if kind == RegionKind::Cuda {
        return register_cuda(ctx, name, body).await;
    }
    let [key, offset, byte_size] = json::pick_members(body, ["key", "offset", "byte_size"])?;
    let key = expect_text("key", expect_field(&key, "key")?)?;
    let offset = offset.map_or(Ok(0), |offset| expect_unsigned("offset", &offset))?;
    let byte_size = expect_unsigned("byte_size", expect_field(&byte_size, "byte_size")?)?;
    regions::register_system(ctx, name, &key, offset, byte_size)
}

fn expect_field<'o, 'a>(value: &'o Option<JsonValue<'a>>, key: &str) -> Result<&'o JsonValue<'a>> {
    value.as_ref().ok_or_else(|| {
        Error::invalid(format!("Shared memory register request has no '{key}' field"))
    })
}

async fn register_cuda(ctx: &FrontendContext, name: &str, body: &[u8]) -> Result<()> {
    let (handle, device_id, byte_size) = {
        let fields = ["raw_handle", "device_id", "byte_size"];
        let [raw_handle, device_id, byte_size] = json::pick_members(body, fields)?;
        let b64 = match expect_field(&raw_handle, "raw_handle")? {
            JsonValue::Object(object) => object.pick(["b64"])?,
            _ => [None],
        };
        let [b64] = b64;
        let b64 = expect_text("b64", expect_field(&b64, "b64")?)?;
        let handle = decode_base64(b64.as_bytes(), || "Unable to parse 'b64'".to_owned())?;
        let device_id = expect_unsigned("device_id", expect_field(&device_id, "device_id")?)?;
        (handle, device_id, expect_unsigned("byte_size", expect_field(&byte_size, "byte_size")?)?)
    };
    let memory = CudaMemory { handle: &handle, device_id, byte_size };
    regions::register_cuda(ctx, name, memory).await
}

/// A region, or all of the kind if the name is empty.
pub fn region_status_json(ctx: &FrontendContext, kind: RegionKind, name: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match kind {
        RegionKind::System => {
            write_array(&mut out, regions::system_status(ctx, name)?, |out, region| {
                write_nested_object(out, |o| {
                    o.string("name", &region.name);
                    o.string("key", &region.key);
                    o.plain("offset", region.offset);
                    o.plain("byte_size", region.byte_size);
                });
            })
        }
        RegionKind::Cuda => {
            write_array(&mut out, regions::cuda_status(ctx, name)?, |out, region| {
                write_nested_object(out, |o| {
                    o.string("name", &region.name);
                    o.plain("device_id", region.device_id);
                    o.plain("byte_size", region.byte_size);
                });
            })
        }
    }
    Ok(out)
}
