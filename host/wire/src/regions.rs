//! The shared-memory endpoints of v2: registering, unregistering, status (docs/protocol/v2.md
//! §2.16).

use crate::context::FrontendContext;
use crate::shared_memory::CudaMemory;
use std::sync::Arc;
use trtserver_base::error::{Code, Error, Result};
use trtserver_device::GpuDriver;
use trtserver_proto::v2::cuda_shared_memory_status_response::RegionStatus as CudaStatus;
use trtserver_proto::v2::system_shared_memory_status_response::RegionStatus as SystemStatus;
use trtserver_request::shared_memory::{
    CudaRegion, HANDLE_BYTES, OpenError, RegionKind, RegisterError, UseError,
};

/// The error for every use of client shared memory on a server that does not allow it.
pub const SHARED_MEMORY_DISABLED: &str = "Client shared memory is disabled. Start the server with \
                                          '--allow-client-shm=true' to enable.";

/// Refuses registering, unregistering and use in requests unless the server was started with
/// `--allow-client-shm`.
pub fn require_allowed(ctx: &FrontendContext) -> Result<()> {
    match ctx.settings.allow_client_shm {
        true => Ok(()),
        false => Err(Error::unsupported(SHARED_MEMORY_DISABLED)),
    }
}

/// Registers `byte_size` bytes at `offset` of the shared-memory object `key`.
pub fn register_system(
    ctx: &FrontendContext,
    name: &str,
    key: &str,
    offset: u64,
    byte_size: u64,
) -> Result<()> {
    require_allowed(ctx)?;
    let registered = ctx.shared_memory.register_system(name, key, offset, byte_size);
    registered.map_err(|e| not_registered(name, key, e))
}

/// Registers GPU memory of the client.
pub async fn register_cuda(
    ctx: &FrontendContext,
    name: &str,
    memory: CudaMemory<'_>,
) -> Result<()> {
    require_allowed(ctx)?;
    open_cuda(ctx, name, memory).await?.map_err(|e| match e {
        RegisterError::Exists => exists(name),
        error => cuda_not_opened(name, error),
    })
}

/// The GPUs of this machine, unless the environment forbids their use.
pub fn gpu_driver(ctx: &FrontendContext) -> Option<&'static GpuDriver> {
    if ctx.settings.cpu_only {
        return None;
    }
    GpuDriver::get().ok()
}

/// Registers GPU memory for either generation. On a thread of its own: the first region of a GPU
/// creates its context.
///
/// # Errors
/// The errors that both generations have in common. The inner error is that of the registry.
pub async fn open_cuda(
    ctx: &FrontendContext,
    name: &str,
    memory: CudaMemory<'_>,
) -> Result<std::result::Result<(), RegisterError>> {
    let driver = gpu_driver(ctx).ok_or_else(|| no_gpu(name))?;
    let handle: [u8; HANDLE_BYTES] = memory.handle.try_into().map_err(|_| {
        Error::invalid(format!(
            "unexpected size for CUDA shared-memory handle, expecting {HANDLE_BYTES} bytes"
        ))
    })?;
    let ordinal = i32::try_from(memory.device_id).unwrap_or(i32::MAX);
    let device = driver
        .device(ordinal)
        .map_err(|e| cuda_not_opened(name, RegisterError::Open(OpenError::Object(e.message))))?;
    let (registry, owned_name) = (Arc::clone(&ctx.shared_memory), name.to_owned());
    let register = move || registry.register_cuda(&owned_name, handle, device, memory.byte_size);
    tokio::task::spawn_blocking(register)
        .await
        .map_err(|e| Error::internal(format!("shared memory region '{name}': {e}")))
}

fn no_gpu(name: &str) -> Error {
    Error::invalid(format!(
        "failed to register CUDA shared memory region: '{name}', GPUs not supported"
    ))
}

/// The errors of CUDA regions that both generations have in common.
pub fn cuda_not_opened(name: &str, error: RegisterError) -> Error {
    let failed =
        |why: &str| format!("failed to register CUDA shared memory region '{name}': {why}");
    match error {
        RegisterError::Open(OpenError::Object(why)) => Error::invalid(failed(&why)),
        RegisterError::Open(OpenError::Range { object }) => Error::invalid(failed(&format!(
            "the size must be from 1 to {object} bytes, the size of the allocation"
        ))),
        error => not_opened(name, "", error),
    }
}

/// Unregisters a region, or all of the kind if the name is empty. Unknown regions count as
/// unregistered.
pub fn unregister_regions(ctx: &FrontendContext, kind: RegionKind, name: &str) -> Result<()> {
    require_allowed(ctx)?;
    match name {
        "" => ctx.shared_memory.unregister_all(Some(kind)),
        _ => ctx.shared_memory.unregister(Some(kind), name),
    }
    Ok(())
}

/// A system region, or all if the name is empty.
pub fn system_status(ctx: &FrontendContext, name: &str) -> Result<Vec<SystemStatus>> {
    let regions = match name {
        "" => ctx.shared_memory.system_regions(),
        _ => vec![ctx.shared_memory.system_region(name).map_err(|e| match e {
            UseError::Unknown => unknown("system", name),
            e => not_usable(name, e),
        })?],
    };
    let status = |region: &trtserver_request::shared_memory::SystemRegion| SystemStatus {
        name: region.name().to_owned(),
        key: region.key().to_owned(),
        offset: region.offset(),
        byte_size: region.len() as u64,
    };
    Ok(regions.iter().map(|region| status(region)).collect())
}

/// A CUDA region, or all if the name is empty.
pub fn cuda_status(ctx: &FrontendContext, name: &str) -> Result<Vec<CudaStatus>> {
    let regions = match name {
        "" => ctx.shared_memory.cuda_regions(),
        _ => vec![ctx.shared_memory.cuda_region(name).map_err(|e| match e {
            UseError::Unknown => unknown("cuda", name),
            e => not_usable(name, e),
        })?],
    };
    let status = |region: &CudaRegion| CudaStatus {
        name: region.name().to_owned(),
        device_id: region.device_id() as u64,
        byte_size: region.len() as u64,
    };
    Ok(regions.iter().map(|region| status(region)).collect())
}

fn exists(name: &str) -> Error {
    let text = format!("shared memory region '{name}' already in manager");
    Error::new(Code::AlreadyExists, text)
}

fn unknown(kind: &str, name: &str) -> Error {
    Error::not_found(format!("Unable to find {kind} shared memory region: '{name}'"))
}

/// The error of a registration. The reason why an object cannot be opened is in the log only.
fn not_registered(name: &str, key: &str, error: RegisterError) -> Error {
    match error {
        RegisterError::Exists => exists(name),
        error => not_opened(name, key, error),
    }
}

/// The errors that both generations have in common.
pub fn not_opened(name: &str, key: &str, error: RegisterError) -> Error {
    let failed = |why: &str| format!("failed to register shared memory region '{name}': {why}");
    match error {
        RegisterError::Name(why) => Error::invalid(failed(&why)),
        RegisterError::Exists => Error::new(Code::AlreadyExists, failed("already registered")),
        RegisterError::ReservedKey => Error::invalid(format!(
            "cannot register shared memory region '{name}' - invalid shm key '{key}'"
        )),
        RegisterError::Open(OpenError::Object(why)) => {
            tracing::info!("shared memory region '{name}': object '{key}' cannot be opened: {why}");
            Error::internal(format!("Unable to open shared memory region: '{key}'"))
        }
        RegisterError::Open(OpenError::Range { object }) => {
            tracing::info!(
                "shared memory region '{name}': not within the {object} bytes of object '{key}'"
            );
            Error::invalid(failed("invalid args"))
        }
        RegisterError::Open(OpenError::Map(why)) => Error::invalid(failed(&why)),
        RegisterError::Open(OpenError::Limit(why)) => {
            Error::new(Code::ResourceExhausted, failed(&why))
        }
    }
}

/// The error of a request that refers to a region.
pub fn not_usable(name: &str, error: UseError) -> Error {
    match error {
        UseError::Unknown => {
            Error::not_found(format!("Unable to find shared memory region: '{name}'"))
        }
        UseError::OtherKind(kind) => {
            let (is, not) = match kind {
                RegionKind::Cuda => ("CUDA", "system"),
                RegionKind::System => ("system", "CUDA"),
            };
            Error::not_found(format!(
                "The region named '{name}' is registered as {is} shared memory, not {not} shared memory"
            ))
        }
        UseError::Offset => {
            Error::invalid(format!("Invalid offset for shared memory region: '{name}'"))
        }
        UseError::Range => {
            Error::invalid(format!("Invalid offset + byte size for shared memory region: '{name}'"))
        }
        UseError::Fault(error) => error,
    }
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
