//! The shared-memory endpoints of v2: registering, unregistering, status (docs/protocol/v2.md §2.16).

use crate::error::{Code, Error, Result};
use crate::net::context::Context;
use crate::shared_memory::{Kind, OpenError, RegisterError, UseError};
use trtserver_proto::v2::cuda_shared_memory_status_response::RegionStatus as CudaStatus;
use trtserver_proto::v2::system_shared_memory_status_response::RegionStatus as SystemStatus;

/// The error for every use of client shared memory on a server that does not allow it.
pub const SHARED_MEMORY_DISABLED: &str = "Client shared memory is disabled. Start the server with \
                                          '--allow-client-shm=true' to enable.";

/// Refuses registering, unregistering and use in requests unless the server was started with `--allow-client-shm`.
pub fn require_allowed(ctx: &Context) -> Result<()> {
    match ctx.settings.allow_client_shm {
        true => Ok(()),
        false => Err(Error::unsupported(SHARED_MEMORY_DISABLED)),
    }
}

/// Registers `byte_size` bytes at `offset` of the shared-memory object `key`.
pub fn register_system(
    ctx: &Context,
    name: &str,
    key: &str,
    offset: u64,
    byte_size: u64,
) -> Result<()> {
    require_allowed(ctx)?;
    let registered = ctx.shared_memory.register_system(name, key, offset, byte_size);
    registered.map_err(|e| not_registered(name, key, e))
}

pub fn register_cuda(ctx: &Context, name: &str) -> Result<()> {
    require_allowed(ctx)?;
    Err(no_gpu(name))
}

/// The error for a CUDA region of either generation.
pub fn no_gpu(name: &str) -> Error {
    Error::invalid(format!(
        "failed to register CUDA shared memory region: '{name}', GPUs not supported"
    ))
}

/// Unregisters a region, or all of the kind if the name is empty. Unknown regions count as unregistered.
pub fn unregister(ctx: &Context, kind: Kind, name: &str) -> Result<()> {
    require_allowed(ctx)?;
    match name {
        "" => ctx.shared_memory.unregister_all(Some(kind)),
        _ => ctx.shared_memory.unregister(Some(kind), name),
    }
    Ok(())
}

/// A system region, or all if the name is empty.
pub fn system_status(ctx: &Context, name: &str) -> Result<Vec<SystemStatus>> {
    let regions = match name {
        "" => ctx.shared_memory.system_regions(),
        _ => vec![ctx.shared_memory.system_region(name).map_err(|e| match e {
            UseError::Unknown => unknown("system", name),
            e => not_usable(name, e),
        })?],
    };
    let status = |region: &crate::shared_memory::Region| SystemStatus {
        name: region.name().to_owned(),
        key: region.key().to_owned(),
        offset: region.offset(),
        byte_size: region.len() as u64,
    };
    Ok(regions.iter().map(|region| status(region)).collect())
}

/// A CUDA region, or all if the name is empty.
pub fn cuda_status(ctx: &Context, name: &str) -> Result<Vec<CudaStatus>> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    match ctx.shared_memory.system_region(name) {
        Ok(_) => Err(not_usable(name, UseError::OtherKind(Kind::System))),
        Err(_) => Err(unknown("cuda", name)),
    }
}

fn unknown(kind: &str, name: &str) -> Error {
    Error::not_found(format!("Unable to find {kind} shared memory region: '{name}'"))
}

/// The error of a registration. The reason why an object cannot be opened is in the log only.
fn not_registered(name: &str, key: &str, error: RegisterError) -> Error {
    match error {
        RegisterError::Exists => Error::new(
            Code::AlreadyExists,
            format!("shared memory region '{name}' already in manager"),
        ),
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
                Kind::Cuda => ("CUDA", "system"),
                Kind::System => ("system", "CUDA"),
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
