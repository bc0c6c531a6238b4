//! The shared-memory endpoint of v1: registering, unregistering, status (docs/protocol/v1.md §3.8,
//! §4.2).

use trtserver_base::error::{Code, Error, Result};
use trtserver_config::{AccessedModels, ApiGroup};
use trtserver_proto::v1::SharedMemoryRegion;
use trtserver_proto::v1::shared_memory_region::{
    CudaSharedMemory, SharedMemoryTypes, SystemSharedMemory,
};
use trtserver_request::shared_memory::{RegisterError, UseError};
use trtserver_wire::access::EndpointAccess;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::regions::{cuda_not_opened, not_opened, not_usable, open_cuda};
use trtserver_wire::shared_memory::CudaMemory;

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
        memory: CudaMemory<'a>,
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

impl<'a> RegionControl<'a> {
    /// What the access check must know.
    pub fn access(&self) -> EndpointAccess<'a> {
        let (what, subject) = match *self {
            Self::Register { name, .. }
            | Self::RegisterCuda { name, .. }
            | Self::RegisterNothing { name } => ("register shared memory", name),
            Self::Unregister { name } => ("unregister shared memory", name),
            Self::UnregisterAll => ("unregister shared memory", ""),
            Self::Status => {
                return EndpointAccess::for_models(&[ApiGroup::SharedMemory], AccessedModels::None);
            }
        };
        EndpointAccess::for_control(&[ApiGroup::SharedMemory], AccessedModels::None, what, subject)
    }
}

/// Executes a request; the regions are for [`RegionControl::Status`]. Clients unregister unknown
/// regions to clean up, so that succeeds.
pub async fn control_region(
    ctx: &FrontendContext,
    call: RegionControl<'_>,
) -> Result<Option<Vec<SharedMemoryRegion>>> {
    ctx.refuse_when_exiting()?;
    match call {
        RegionControl::Register { name, key, offset, byte_size } => ctx
            .shared_memory
            .register_system(name, key, offset, byte_size)
            .map_err(|e| not_registered(name, key, e))?,
        RegionControl::RegisterCuda { name, memory } => {
            open_cuda(ctx, name, memory).await?.map_err(|e| match e {
                RegisterError::Exists => exists(name),
                error => cuda_not_opened(name, error),
            })?
        }
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

/// System regions, then CUDA regions.
fn regions(ctx: &FrontendContext) -> Vec<SharedMemoryRegion> {
    let region = |name: &str, len: usize, types| SharedMemoryRegion {
        name: name.to_owned(),
        byte_size: len as u64,
        shared_memory_types: Some(types),
    };
    let system = ctx.shared_memory.system_regions();
    let system = system.iter().map(|r| {
        let (shared_memory_key, offset) = (r.key().to_owned(), r.offset());
        let system = SystemSharedMemory { shared_memory_key, offset };
        region(r.name(), r.len(), SharedMemoryTypes::SystemSharedMemory(system))
    });
    let cuda = ctx.shared_memory.cuda_regions();
    let cuda = cuda.iter().map(|r| {
        let cuda = CudaSharedMemory { device_id: r.device_id().into() };
        region(r.name(), r.len(), SharedMemoryTypes::CudaSharedMemory(cuda))
    });
    system.chain(cuda).collect()
}

fn not_registered(name: &str, key: &str, error: RegisterError) -> Error {
    match error {
        RegisterError::Exists => exists(name),
        error => not_opened(name, key, error),
    }
}

fn exists(name: &str) -> Error {
    let text = format!("shared memory block '{name}' already in manager");
    Error::new(Code::AlreadyExists, text)
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
