//! Tensors that stay in GPU memory: outputs for the next step of an ensemble or for the memory of a
//! client, and inputs that are read where they are.

use super::GpuInstance;
use std::ptr::without_provenance_mut;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_device::{GpuDevice, GpuStreams};
use trtserver_request::TensorData;
use trtserver_request::memory::{MemoryLocation, MemoryOwner, PlacedMemory, PlacedSlice};

/// A written output in memory `M`.
struct KeptOutput<M> {
    _memory: M,
    address: u64,
    device: &'static GpuDevice,
}

/// An output that is written, as data of a response. It is freed in the order of the stream that
/// has written it: work of other streams must be complete when the last user drops it (see
/// [`GpuInstance::hold_input`]).
pub fn kept_output(
    memory: impl Send + Sync + 'static,
    (address, len): (u64, usize),
    device_id: i32,
    device: &'static GpuDevice,
) -> TensorData {
    let owner = Arc::new(KeptOutput { _memory: memory, address, device });
    let (ptr, location) =
        (without_provenance_mut(address as usize), MemoryLocation::gpu(device_id));
    // SAFETY: GPU memory of this size, which lives as long as the owner.
    let memory = unsafe { PlacedMemory::new(ptr, len, location, false, owner) };
    PlacedSlice::new(&memory, 0, len).map_or(TensorData::EMPTY, TensorData::from)
}

impl<M: Send + Sync> MemoryOwner for KeptOutput<M> {
    fn fault(&self) -> Option<Error> {
        self.device.fault()
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let from = self.address + offset as u64;
        // SAFETY: the caller reads inside the memory; both are valid until the copy is complete,
        // which this call waits for.
        unsafe { self.device.copy_and_wait(to.as_mut_ptr().addr() as u64, from, to.len()) }
    }
}

/// An input that the instance reads where it is.
struct HeldInput {
    slice: Option<PlacedSlice>,
    streams: Arc<GpuStreams>,
}

impl GpuInstance {
    /// Keeps the memory of an input that was not copied until the work that is on the compute
    /// stream when the request is dropped is complete: other streams may reuse the memory, and a
    /// client may close it.
    pub(super) fn hold_input(&self, data: &mut TensorData) {
        let TensorData::Placed(slice) = data else { return };
        let (ptr, len) = (slice.as_ptr(), slice.len());
        let (location, shared) = (slice.location(), slice.memory().is_shared());
        let streams = Arc::clone(&self.streams);
        let owner = Arc::new(HeldInput { slice: Some(slice.clone()), streams });
        // SAFETY: the range of the slice, which the owner keeps.
        let memory = unsafe { PlacedMemory::new(ptr, len, location, shared, owner) };
        if let Some(held) = PlacedSlice::new(&memory, 0, len) {
            *data = held.into();
        }
    }
}

impl MemoryOwner for HeldInput {
    fn fault(&self) -> Option<Error> {
        self.slice.as_ref()?.memory().fault()
    }

    fn ready_event(&self) -> *const u8 {
        self.slice.as_ref().map_or(std::ptr::null(), |slice| slice.memory().ready_event())
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let Some(slice) = &self.slice else { return Ok(()) };
        slice.memory().owner().read(slice.offset() + offset, to)
    }
}

impl Drop for HeldInput {
    fn drop(&mut self) {
        let slice = self.slice.take();
        self.streams.when_done(&self.streams.compute, Box::new(move |_| drop(slice)));
    }
}

#[cfg(test)]
#[path = "resident_tests.rs"]
mod tests;
