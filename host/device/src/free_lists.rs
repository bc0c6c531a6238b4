//! Free device memory by size, in the order of streams, for drivers without memory pools (before
//! CUDA 11.2).

use super::api::CuPtr;
use super::context::CudaContext;
use super::event::{CudaEvent, EventPool};
use super::size_class::size_class;
use super::stream::CudaStream;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::error::{Code, Error, Result};

/// Blocks of one device, allocated with `cuMemAlloc`, which synchronises the device, and therefore
/// kept.
pub struct FreeLists {
    context: &'static CudaContext,
    events: &'static EventPool,
    keep: u64,
    state: Mutex<FreeListsState>,
}

#[derive(Default)]
struct FreeListsState {
    free: BTreeMap<usize, Vec<FreeListBlock>>,
    free_bytes: u64,
    held: u64,
}

struct FreeListBlock {
    address: CuPtr,
    /// Event that is reached when the work with the block is complete.
    freed: CudaEvent,
    /// Work on this stream needs no wait.
    stream: Arc<CudaStream>,
}

impl FreeLists {
    pub fn new(context: &'static CudaContext, events: &'static EventPool, keep: u64) -> Self {
        Self { context, events, keep, state: Mutex::default() }
    }

    /// A block for work that is queued on `stream` from now on. The context is current.
    pub fn alloc(&self, bytes: usize, stream: &Arc<CudaStream>) -> Result<CuPtr> {
        let class = size_class(bytes).ok_or_else(|| {
            Error::new(Code::ResourceExhausted, format!("a block of {bytes} bytes is too large"))
        })?;
        if let Some(block) = self.take(class, stream) {
            if !Arc::ptr_eq(&block.stream, stream) {
                block.freed.block(stream)?;
            }
            return Ok(block.address);
        }
        match self.create(class) {
            Err(e) if e.code == Code::ResourceExhausted => {
                // Free blocks of other sizes may be all that is missing.
                self.trim();
                self.create(class)
            }
            created => created,
        }
    }

    /// Takes back a block that is not used by work behind this point of `stream`. The context is
    /// current.
    pub fn free(&self, address: CuPtr, bytes: usize, stream: &Arc<CudaStream>) {
        // `alloc` has checked the size.
        let Some(class) = size_class(bytes) else { return };
        let freed = match self.events.record(stream) {
            Ok(freed) => freed,
            Err(e) => {
                // Without an event the block can not be used again.
                tracing::error!("cannot free {bytes} bytes of GPU memory: {e}");
                return;
            }
        };
        let mut state = self.state.lock();
        if state.free_bytes + class as u64 <= self.keep {
            state.free_bytes += class as u64;
            let block = FreeListBlock { address, freed, stream: Arc::clone(stream) };
            state.free.entry(class).or_default().push(block);
            return;
        }
        state.held -= class as u64;
        drop(state);
        self.release(address);
    }

    /// Bytes taken from the driver.
    pub fn held(&self) -> u64 {
        self.state.lock().held
    }

    /// Gives all free blocks back to the driver. The context is current.
    pub fn trim(&self) {
        let mut state = self.state.lock();
        let free = std::mem::take(&mut state.free);
        state.held -= state.free_bytes;
        state.free_bytes = 0;
        drop(state);
        for block in free.into_values().flatten() {
            self.release(block.address);
        }
    }

    /// The free block of the size that was freed last on `stream`, else on any.
    fn take(&self, class: usize, stream: &Arc<CudaStream>) -> Option<FreeListBlock> {
        let mut state = self.state.lock();
        let blocks = state.free.get_mut(&class)?;
        let same = blocks.iter().rposition(|block| Arc::ptr_eq(&block.stream, stream));
        let block = match same {
            Some(i) => blocks.swap_remove(i),
            None => blocks.pop()?,
        };
        state.free_bytes -= class as u64;
        Some(block)
    }

    fn create(&self, class: usize) -> Result<CuPtr> {
        let mut address = 0;
        // SAFETY: the context is current and the pointer is valid.
        self.context.check(unsafe { self.context.api.memory_alloc(&mut address, class) })?;
        self.state.lock().held += class as u64;
        Ok(address)
    }

    /// `cuMemFree` waits for all work of the device, so none can still use the block.
    fn release(&self, address: CuPtr) {
        // SAFETY: the block came from `cuMemAlloc` and is in no list.
        if let Err(e) = self.context.check(unsafe { self.context.api.memory_free(address) }) {
            tracing::error!("cannot free GPU memory: {e}");
        }
    }
}
