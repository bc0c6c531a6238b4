//! Tensors in regions: inputs are read where the client wrote them, outputs are written where it
//! wants them.

use super::{RegionRegistry, SystemRegion, UseError};
use crate::TensorData;
use crate::memory::{MemoryLocation, MemoryOwner, OutputMemory, PlacedMemory, PlacedSlice};
use crate::shared_region::SharedRegion;
use std::sync::Arc;
use trtserver_base::error::Error;
use trtserver_device::GpuDevice;

impl MemoryOwner for SystemRegion {
    fn fault(&self) -> Option<Error> {
        SystemRegion::fault(self)
    }

    fn prepare_upload(&self, device: &'static GpuDevice) {
        // A device reads pinned pages of an object that was made shorter without a signal.
        if self.pin(device) {
            self.recheck();
        }
    }

    fn shared_region(&self) -> Option<SharedRegion<'_>> {
        Some(SystemRegion::shared_region(self))
    }
}

impl SystemRegion {
    /// The region as memory of tensors.
    pub fn memory(self: &Arc<Self>) -> Arc<PlacedMemory> {
        let owner = Arc::clone(self);
        // SAFETY: the window is mapped for reading and writing as long as the region exists.
        unsafe {
            PlacedMemory::new(self.ptr().as_ptr(), self.len(), MemoryLocation::CPU, true, owner)
        }
    }
}

impl RegionRegistry {
    /// A tensor of `len` bytes at `offset` of a region, which is not copied.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn input(&self, name: &str, offset: u64, len: u64) -> Result<TensorData, UseError> {
        self.slice(name, offset, len).map(TensorData::from)
    }

    /// The memory for an output of at most `len` bytes at `offset` of a region.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn output(&self, name: &str, offset: u64, len: u64) -> Result<OutputMemory, UseError> {
        self.slice(name, offset, len).map(OutputMemory::new)
    }

    fn slice(&self, name: &str, offset: u64, len: u64) -> Result<PlacedSlice, UseError> {
        let memory = self.part(name, offset, len)?;
        // The part is in the address space, so neither number is larger than `usize`.
        PlacedSlice::new(&memory, offset as usize, len as usize).ok_or(UseError::Range)
    }
}
