//! Client shared memory that messages of a work connection refer to: files and CUDA IPC handles
//! come from the host, and are opened here again.

use crate::messages::{ExecuteBatch, RegionMessage};
use crate::wire::Receiver;
use std::collections::HashMap;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_device::GpuDevice;
use trtserver_request::memory::{PlacedMemory, PlacedSlice};
use trtserver_request::shared_memory;
use trtserver_request::shared_memory::{CudaRegion, OpenError};

/// The regions by number; an error for one that cannot be opened.
pub struct Regions {
    by_number: HashMap<u64, Result<Arc<PlacedMemory>>>,
    gpu: Option<&'static GpuDevice>,
}

impl Regions {
    /// `gpu` is that of the instance.
    pub fn new(gpu: Option<&'static GpuDevice>) -> Self {
        Self { by_number: HashMap::new(), gpu }
    }

    /// Opens the regions that came with a message, and closes the regions that it lists as dropped.
    /// A request that still uses one keeps it open.
    pub fn update(&mut self, message: &ExecuteBatch, receiver: &mut Receiver) {
        for region in &message.regions {
            self.by_number.insert(region.number, open(region, self.gpu, receiver));
        }
        for number in &message.dropped_regions {
            self.by_number.remove(number);
        }
    }

    /// # Errors
    /// The region cannot be opened. An unknown region or a range that is not in it is a fault of
    /// the host.
    pub fn slice(&self, number: u64, offset: u64, bytes: u64) -> Result<PlacedSlice> {
        let Some(region) = self.by_number.get(&number) else {
            return Err(Error::internal(format!(
                "shared memory region number {number} was not sent; this is a fault of the server"
            )));
        };
        let region = region.as_ref().map_err(Error::clone)?;
        let range = usize::try_from(offset).ok().zip(usize::try_from(bytes).ok());
        let slice = range.and_then(|(offset, bytes)| PlacedSlice::new(region, offset, bytes));
        slice.ok_or_else(|| {
            Error::internal(format!(
                "{bytes} bytes at {offset} are not in shared memory region number {number} of {} bytes; this is \
                 a fault of the server",
                region.len()
            ))
        })
    }
}

/// Opens a region; one in GPU memory is of the GPU of the instance.
fn open(
    region: &RegionMessage,
    gpu: Option<&'static GpuDevice>,
    receiver: &mut Receiver,
) -> Result<Arc<PlacedMemory>> {
    let RegionMessage { name, key, offset, bytes, .. } = region;
    let failed =
        |e| Error::internal(format!("shared memory region '{name}' cannot be opened: {e}"));
    if !region.cuda_handle.is_empty() {
        let handle = region.cuda_handle.as_slice().try_into().ok();
        let Some((gpu, handle)) = gpu.zip(handle) else {
            return Err(failed("it is not of the GPU of the instance".to_owned()));
        };
        return CudaRegion::open(name, handle, gpu, *bytes)
            .map(|region| Arc::new(region).memory())
            .map_err(|e| failed(e.to_string()));
    }
    let Some(file) = receiver.file() else {
        return Err(failed("the host sent no file".to_owned()));
    };
    shared_memory::SystemRegion::from_descriptor(name, key, file, *offset, *bytes)
        .map(|region| Arc::new(region).memory())
        .map_err(|e| match e {
            // The client has made it shorter since it was registered.
            OpenError::Range { .. } => shared_memory::missing_pages(name, key, *offset, *bytes),
            e => failed(e.to_string()),
        })
}
