//! Streams: queues of work of a GPU that run in order.

use super::api::{CuPtr, CuStream, STREAM_NON_BLOCKING};
use super::context::CudaContext;
use std::ffi::c_int;
use std::ptr::null_mut;
use trtserver_base::error::Result;

/// A stream of the host, or a borrowed one of a backend.
pub struct CudaStream {
    context: &'static CudaContext,
    handle: CuStream,
    owned: bool,
}

// SAFETY: a handle of the driver, whose functions may be called on any thread.
unsafe impl Send for CudaStream {}
// SAFETY: the driver accepts calls with one stream handle from several threads at once.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    /// A stream that does not wait for the legacy default stream. Lower priorities take precedence.
    pub(super) fn new(context: &'static CudaContext, priority: c_int) -> Result<Self> {
        let _entered = context.enter()?;
        let mut handle = null_mut();
        // SAFETY: a context is current and the pointer is valid.
        context.check(unsafe {
            context.api.stream_create(&mut handle, STREAM_NON_BLOCKING, priority)
        })?;
        Ok(Self { context, handle, owned: true })
    }

    /// A stream that a backend owns.
    ///
    /// # Safety
    /// `handle` is a stream of the device's primary context, or null for its default stream, and
    /// outlives the value.
    pub unsafe fn borrowed(context: &'static CudaContext, handle: CuStream) -> Self {
        Self { context, handle, owned: false }
    }

    pub fn context(&self) -> &'static CudaContext {
        self.context
    }

    pub fn handle(&self) -> CuStream {
        self.handle
    }

    /// Queues a copy between any two memories: host, pinned, this or another device.
    ///
    /// # Safety
    /// Both ranges stay valid, the source unchanged and the target unused, until the copy is
    /// complete.
    pub unsafe fn copy(&self, to: CuPtr, from: CuPtr, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.context.enter()?;
        // SAFETY: the caller's promise.
        self.context.check(unsafe { self.context.api.copy_async(to, from, bytes, self.handle) })
    }

    /// Queues writing zeros to device memory.
    ///
    /// # Safety
    /// The range is device memory and stays valid until the work is complete.
    pub unsafe fn zero(&self, address: CuPtr, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.context.enter()?;
        // SAFETY: the caller's promise.
        self.context.check(unsafe { self.context.api.set_async(address, 0, bytes, self.handle) })
    }

    /// As [`CudaStream::synchronize`], for work whose memory is reused next. A device that does not
    /// tell when its work is complete is lost.
    ///
    /// # Errors
    /// The device is lost.
    pub fn settle(&self) -> Result<()> {
        self.synchronize().inspect_err(|e| {
            self.context.lose(&format!("a stream cannot be waited for: {e}"));
        })
    }

    /// Blocks until all queued work is complete.
    pub fn synchronize(&self) -> Result<()> {
        let _entered = self.context.enter()?;
        // SAFETY: the stream is alive.
        self.context.check(unsafe { self.context.api.stream_synchronize(self.handle) })
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        let Ok(_entered) = self.context.enter_lost() else { return };
        // SAFETY: owned, and not used after this. Queued work still completes.
        let _ = unsafe { self.context.api.stream_destroy(self.handle) };
    }
}
