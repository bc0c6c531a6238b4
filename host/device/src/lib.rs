//! GPUs: the CUDA driver found at run time, contexts, streams, events, memory. Nothing links to
//! CUDA; a machine without a GPU only causes a log line.
//!
//! Each GPU instance has a compute stream and two copy streams ([`streams`]). A completion thread
//! for each device sleeps on the next event and calls back when it is reached. Memory comes from
//! pools that allocate in the order of a stream; pinned host memory has a pool of its own. A GPU
//! whose context has a sticky error is lost: every call fails until the process ends.

mod api;
mod codes;
mod completion;
mod context;
mod driver;
mod event;
mod free_lists;
mod gpu;
mod ipc;
mod load_measure;
mod pinned;
mod pool;
pub mod profiler;
mod registered;
mod settings;
mod size_class;
mod stream;
mod streams;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod testing;

/// Which instance's work on a GPU takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPriority {
    Default,
    Greatest,
    Least,
}

pub use api::{CuEvent, CuPtr, CuStream};
pub use completion::Callback;
pub use context::{CudaContext, LostWatch};
pub use driver::{DriverAbsence, GpuDriver, configure_devices, find_gpu, settings};
pub use event::{CudaEvent, EventPool};
pub use gpu::GpuDevice;
pub use ipc::IpcMemory;
pub use load_measure::{GrowthResult, LoadGrowth, LoadMeasure};
pub use pinned::{PinnedMemory, PinnedPool};
pub use pool::{DeviceMemory, DevicePool, PoolBytes};
pub use registered::RegisteredMemory;
pub use settings::DeviceSettings;
pub use stream::CudaStream;
pub use streams::{GpuStreams, InstanceStreams, open_streams};
