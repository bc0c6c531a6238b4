//! GPUs: the CUDA driver found at run time, contexts, streams, events, memory. Nothing links to CUDA; a machine without
//! a GPU only causes a log line.

mod api; // functions of the driver library
mod codes; // result codes
mod completion; // callbacks when work is complete
mod context; // primary contexts, lost devices
mod driver; // finding driver and devices
mod event; // points in the work of a stream
mod free_lists; // device memory, for drivers without pools
mod gpu; // one device
mod ipc; // memory of other processes
mod pinned; // pinned host memory
mod pool; // device memory
pub mod profiler; // the CUDA profiler
mod settings; // sizes of the pools
mod size_class; // sizes of pooled blocks
mod stream; // queues of work
mod streams; // those of an instance
#[cfg(test)]
pub mod testing; // a fake driver

/// Which instance's work on a GPU takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPriority {
    Default,
    Greatest,
    Least,
}

pub use api::{CuEvent, CuPtr, CuStream};
pub use completion::Callback;
pub use context::{Context, LostWatch};
pub use driver::{Absent, Driver, device};
pub use event::{Event, EventPool};
pub use gpu::Device;
pub use ipc::IpcMemory;
pub use pinned::{PinnedMemory, PinnedPool};
pub use pool::{DeviceMemory, DevicePool, PoolBytes};
pub use settings::{DeviceSettings, configure, current as settings};
pub use stream::Stream;
pub use streams::{GpuStreams, Streams, open_streams};
