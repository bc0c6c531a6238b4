//! Client shared memory as requests of both generations name it: a part of a registered region; GPU
//! memory that is registered.

use std::sync::Arc;
use trtserver_request::TensorData;
use trtserver_request::memory::OutputMemory;
use trtserver_request::shared_memory::{RegionRegistry, UseError};

/// Part of a registered region. Its bounds are not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    pub region: String,
    /// From the start of the region.
    pub offset: u64,
    pub byte_size: u64,
}

/// GPU memory of a client that it registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaMemory<'a> {
    /// The CUDA IPC handle, as it was sent.
    pub handle: &'a [u8],
    /// CUDA ordinal.
    pub device_id: u64,
    pub byte_size: u64,
}

impl RegionSlice {
    /// The tensor in the slice, which is not copied.
    pub fn input(&self, regions: &RegionRegistry) -> Result<TensorData, UseError> {
        regions.input(&self.region, self.offset, self.byte_size)
    }

    /// The slice as destination of an output. It may overlap inputs and other destinations: the
    /// client gets what was written last.
    pub fn output(&self, regions: &RegionRegistry) -> Result<Arc<OutputMemory>, UseError> {
        regions.output(&self.region, self.offset, self.byte_size).map(Arc::new)
    }
}
