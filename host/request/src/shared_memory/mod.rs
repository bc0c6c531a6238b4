//! Shared memory of clients: named regions of POSIX shared-memory objects, and of GPU memory by
//! CUDA IPC handles, which clients register and requests refer to.
//!
//! A client registers a part of an object, known by its key (its name in `/dev/shm`), under the name
//! of a region. A system region is a window of the object, mapped for reading and writing. Everything
//! else about the object is the client's, who may write it at any time, unlink it, or make it shorter
//! than the window. The last would end this process with SIGBUS at the next access; [`guard`]
//! replaces the window by zero pages instead and marks the region, and every request that used the
//! region fails ([`SystemRegion::fault`]).
//!
//! A region that is unregistered stays mapped until the last request that uses it has dropped it.

mod cuda_region;
mod guard;
mod key;
mod limits;
mod region;
mod registry;
mod tensors;
mod window;

pub use cuda_region::{CudaRegion, HANDLE_BYTES};
pub use region::{OpenError, SystemRegion, missing_pages};
pub use registry::{RegionKind, RegionRegistry, RegisterError, UseError};

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod testing;
