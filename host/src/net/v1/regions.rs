//! The shared-memory endpoint of v1: registering, unregistering, status (docs/protocol/v1.md §3.8, §4.2).

use crate::error::{Code, Error, Result};
use crate::net::context::Context;
use crate::net::v2::regions::{no_gpu, not_opened, not_usable};
use crate::shared_memory::{RegisterError, UseError};
use trtserver_proto::v1::SharedMemoryRegion;
use trtserver_proto::v1::shared_memory_region::{SharedMemoryTypes, SystemSharedMemory};

/// A shared-memory request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionControl<'a> {
    Register {
        name: &'a str,
        key: &'a str,
        offset: u64,
        byte_size: u64,
    },
    RegisterCuda {
        name: &'a str,
    },
    /// A registration without an object or a handle.
    RegisterNothing {
        name: &'a str,
    },
    Unregister {
        name: &'a str,
    },
    UnregisterAll,
    Status,
}

/// Executes a request; the regions are for [`RegionControl::Status`]. Clients unregister unknown regions to clean up, so that
/// succeeds.
pub fn control(ctx: &Context, call: RegionControl<'_>) -> Result<Option<Vec<SharedMemoryRegion>>> {
    ctx.refuse_when_exiting()?;
    match call {
        RegionControl::Register { name, key, offset, byte_size } => ctx
            .shared_memory
            .register_system(name, key, offset, byte_size)
            .map_err(|e| not_registered(name, key, e))?,
        RegionControl::RegisterCuda { name } => return Err(no_gpu(name)),
        RegionControl::RegisterNothing { name } => {
            return Err(Error::invalid(format!(
                "failed to register shared memory region: '{name}', improperly formed request."
            )));
        }
        RegionControl::Unregister { name } => ctx.shared_memory.unregister(None, name),
        RegionControl::UnregisterAll => ctx.shared_memory.unregister_all(None),
        RegionControl::Status => return Ok(Some(regions(ctx))),
    }
    Ok(None)
}

fn regions(ctx: &Context) -> Vec<SharedMemoryRegion> {
    let status = |region: &crate::shared_memory::Region| SharedMemoryRegion {
        name: region.name().to_owned(),
        byte_size: region.len() as u64,
        shared_memory_types: Some(SharedMemoryTypes::SystemSharedMemory(SystemSharedMemory {
            shared_memory_key: region.key().to_owned(),
            offset: region.offset(),
        })),
    };
    ctx.shared_memory.system_regions().iter().map(|region| status(region)).collect()
}

fn not_registered(name: &str, key: &str, error: RegisterError) -> Error {
    match error {
        RegisterError::Exists => Error::new(
            Code::AlreadyExists,
            format!("shared memory block '{name}' already in manager"),
        ),
        error => not_opened(name, key, error),
    }
}

/// The error of a request that refers to a region.
pub fn not_usable_in_v1(name: &str, error: UseError) -> Error {
    match error {
        UseError::Unknown => {
            Error::not_found(format!("shared memory block '{name}' not found in manager"))
        }
        error => not_usable(name, error),
    }
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
