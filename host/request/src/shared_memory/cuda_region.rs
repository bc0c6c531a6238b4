//! A region in GPU memory of a client, which it shares by a CUDA IPC handle.

use super::region::OpenError;
use crate::memory::{MemoryLocation, MemoryOwner, PlacedMemory};
use crate::shared_region::{RegionObservers, RegionSource, SharedRegion};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_device::{GpuDevice, IpcMemory};

/// Size of a CUDA IPC handle.
pub const HANDLE_BYTES: usize = 64;

/// A registered region of a client's GPU memory, opened by its CUDA IPC handle. The allocation is
/// closed when the last request that uses the region has dropped it.
pub struct CudaRegion {
    name: Box<str>,
    device: &'static GpuDevice,
    len: usize,
    memory: IpcMemory,
    /// For the processes of isolated models, which are notified when the region is dropped.
    handle: [u8; HANDLE_BYTES],
    number: u64,
    observers: RegionObservers,
}

impl CudaRegion {
    /// Opens the first `len` bytes of the allocation. The first region of a device creates its
    /// context, which takes some hundred milliseconds: not on a network thread.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        name: &str,
        handle: [u8; HANDLE_BYTES],
        device: &'static GpuDevice,
        len: u64,
    ) -> Result<Self, OpenError> {
        let memory = device.open_ipc(handle).map_err(|e| OpenError::Object(e.message))?;
        let object = memory.len() as u64;
        let inside = usize::try_from(len).ok().filter(|_| len > 0 && len <= object);
        let len = inside.ok_or(OpenError::Range { object })?;
        let (number, observers) = (0, RegionObservers::default());
        Ok(Self { name: name.into(), device, len, memory, handle, number, observers })
    }

    /// The region under its number in a registry.
    pub(super) fn with_number(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// CUDA ordinal of its GPU.
    pub fn device_id(&self) -> i32 {
        self.device.ordinal
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: the registry refuses empty regions.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The region as memory of tensors.
    pub fn memory(self: &Arc<Self>) -> Arc<PlacedMemory> {
        let address = std::ptr::without_provenance_mut(self.memory.address() as usize);
        let location = MemoryLocation::gpu(self.device_id());
        let owner = Arc::clone(self);
        // SAFETY: the allocation has at least this size, and is open as long as the region exists.
        unsafe { PlacedMemory::new(address, self.len, location, true, owner) }
    }

    fn address(&self, offset: usize, len: usize) -> Result<u64> {
        match offset.checked_add(len).is_some_and(|end| end <= self.len) {
            true => Ok(self.memory.address() + offset as u64),
            false => Err(Error::internal(format!(
                "{len} bytes at {offset} are not within CUDA shared memory region '{}' of {} bytes",
                self.name, self.len
            ))),
        }
    }
}

impl Drop for CudaRegion {
    fn drop(&mut self) {
        self.observers.notify(self.number);
    }
}

impl MemoryOwner for CudaRegion {
    fn shared_region(&self) -> Option<SharedRegion<'_>> {
        let Self { name, handle, number, observers, .. } = self;
        let source = RegionSource::Cuda { handle };
        Some(SharedRegion { number: *number, name, source, observers })
    }

    fn fault(&self) -> Option<Error> {
        let lost = self.device.fault()?;
        let (name, why) = (&self.name, lost.message);
        let text = format!("shared memory region '{name}' cannot be used any more: {why}");
        Some(Error::unavailable(text))
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let from = self.address(offset, to.len())?;
        // SAFETY: both ranges are valid until the copy is complete, which this call waits for.
        unsafe { self.device.copy_and_wait(to.as_mut_ptr() as u64, from, to.len()) }
    }

    fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        let to = self.address(offset, from.len())?;
        // SAFETY: `address` checked the range of the region, `from` is a slice, and this call waits
        // until the copy is complete.
        unsafe { self.device.copy_and_wait(to, from.as_ptr() as u64, from.len()) }
    }

    fn copy_from_gpu(&self, offset: usize, from: *const u8, len: usize) -> Result<()> {
        let to = self.address(offset, len)?;
        // SAFETY: `address` checked the range of the region; `PlacedSlice::copy_from_gpu` passes a
        // slice of `len` bytes and keeps it until the copy is complete, which this call waits for.
        unsafe { self.device.copy_and_wait(to, from.addr() as u64, len) }
    }
}

#[cfg(test)]
#[path = "cuda_region_tests.rs"]
mod tests;
