//! Device memory of other processes, opened by its CUDA IPC handle.

use super::api::{CuPtr, IPC_LAZY_PEER_ACCESS};
use super::context::CudaContext;
use cudarc::driver::sys::CUipcMemHandle;
use std::ffi::c_char;
use trtserver_base::error::Result;

/// An allocation of another process. Closed when dropped: work that uses it must be complete by
/// then.
pub struct IpcMemory {
    context: &'static CudaContext,
    address: CuPtr,
    bytes: usize,
}

impl IpcMemory {
    /// # Errors
    /// The handle is invalid, of this process, or of another device; or the device is lost.
    pub(super) fn open(context: &'static CudaContext, handle: [u8; 64]) -> Result<Self> {
        let _entered = context.enter()?;
        let handle = CUipcMemHandle { reserved: handle.map(|byte| byte as c_char) };
        let mut address = 0;
        // SAFETY: the pointer is valid; the driver checks the handle.
        let opened = unsafe { context.api.ipc_open(&mut address, handle, IPC_LAZY_PEER_ACCESS) };
        context.check(opened)?;
        let mut memory = Self { context, address, bytes: 0 };
        let mut base = 0;
        // SAFETY: the pointers are valid and the allocation is open.
        let range = unsafe { context.api.address_range(&mut base, &mut memory.bytes, address) };
        context.check(range)?;
        memory.bytes -= (address - base) as usize;
        Ok(memory)
    }

    pub fn address(&self) -> CuPtr {
        self.address
    }

    /// Size of the allocation.
    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub fn context(&self) -> &'static CudaContext {
        self.context
    }
}

impl Drop for IpcMemory {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else { return };
        // SAFETY: opened by this value, which nothing uses any more.
        if let Err(e) = self.context.check(unsafe { self.context.api.ipc_close(self.address) }) {
            tracing::error!("cannot close GPU memory of another process: {e}");
        }
    }
}
