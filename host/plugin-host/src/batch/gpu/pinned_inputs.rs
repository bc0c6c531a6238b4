//! Large request bodies for models on a GPU are received into pinned memory, from which the device
//! copies without a staging copy of the driver.

use std::ptr::NonNull;
use trtserver_base::ledger::MemoryTag;
use trtserver_device::{GpuDevice, PinnedMemory};
use trtserver_request::buffer::{InputBlock, InputPool};

/// The pinned memory of the process, for bodies. Network threads take what is pinned already; the
/// thread of an instance pins more, up to the limit of the pool.
pub struct PinnedInputs(pub &'static GpuDevice);

struct PinnedBlock(PinnedMemory);

// SAFETY: a block of the pool is pinned memory of the size that was asked for, which the pool gives
// to one user at a time; memory of the driver is initialised.
unsafe impl InputBlock for PinnedBlock {
    fn ptr(&self) -> NonNull<u8> {
        NonNull::new(self.0.as_ptr()).unwrap_or(NonNull::dangling())
    }
}

impl InputPool for PinnedInputs {
    fn block(&self, len: usize, tag: MemoryTag) -> Option<Box<dyn InputBlock>> {
        let block = self.0.pinned().take_pinned(len, tag)?;
        Some(Box::new(PinnedBlock(block)))
    }
}
