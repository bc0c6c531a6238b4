//! Host memory of another owner, such as a client's shared memory, that is pinned where it is.

use super::api::HOST_REGISTER_PORTABLE;
use super::context::CudaContext;
use super::pinned::PinnedPool;
use std::ptr::NonNull;
use trtserver_base::error::Result;

/// Memory that devices copy from and to without the driver's staging buffers until this is dropped:
/// copies must be complete by then.
pub struct RegisteredMemory {
    pool: &'static PinnedPool,
    context: &'static CudaContext,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the driver pins memory for the whole process; the address is not dereferenced here.
unsafe impl Send for RegisteredMemory {}
// SAFETY: a shared value gives out nothing.
unsafe impl Sync for RegisteredMemory {}

impl RegisteredMemory {
    /// Pins `bytes` at `start`, both multiples of a page, through `context`. Takes milliseconds.
    ///
    /// # Errors
    /// The pool has no room for it, or the driver refuses: devices copy it as pageable memory.
    ///
    /// # Safety
    /// The memory stays mapped until this is dropped.
    pub(super) unsafe fn pin(
        pool: &'static PinnedPool,
        context: &'static CudaContext,
        start: NonNull<u8>,
        bytes: usize,
    ) -> Result<Self> {
        // Before bytes are counted: a device that is lost refuses here.
        let _entered = context.enter()?;
        pool.count_registered(context, bytes)?;
        let address = start.as_ptr().cast();
        // SAFETY: the context is current, and the memory is mapped by the caller's promise.
        let pinned = unsafe { context.api.host_register(address, bytes, HOST_REGISTER_PORTABLE) };
        match context.check(pinned) {
            Ok(()) => Ok(Self { pool, context, start, bytes }),
            Err(e) => {
                pool.forget_registered(bytes);
                Err(e)
            }
        }
    }
}

impl Drop for RegisteredMemory {
    fn drop(&mut self) {
        let unpin = || {
            let _entered = self.context.enter_lost()?;
            // SAFETY: pinned by this value, and still mapped by the promise of `pin`.
            let unpinned = unsafe { self.context.api.host_unregister(self.start.as_ptr().cast()) };
            self.context.check(unpinned)
        };
        // A lost device refuses everything; its driver unpins when the process ends.
        if let Err(e) = unpin()
            && self.context.lost().is_none()
        {
            tracing::error!("cannot unpin shared memory: {e}");
        }
        self.pool.forget_registered(self.bytes);
    }
}
