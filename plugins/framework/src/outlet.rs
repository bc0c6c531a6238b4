//! Where outputs go: into the response to one request, or scattered over a batch.

use trtserver_plugin_api::abi::types::{Buf, Memory};
use trtserver_plugin_api::author::{Batch, Dtype, Error, Response};

/// Type, shape and name of an output.
#[derive(Clone, Copy)]
pub struct Output<'a> {
    pub name: &'a str,
    pub kind: Dtype,
    pub shape: &'a [i64],
}

/// Memory of a framework and what frees it; any thread, once.
#[derive(Clone, Copy)]
pub struct Donation {
    pub data: *mut u8,
    pub bytes: usize,
    pub release: unsafe extern "C" fn(*mut u8),
    pub owner: *mut u8,
}

impl Donation {
    fn memory(&self) -> Buf {
        Buf {
            ptr: self.data,
            bytes: self.bytes as u64,
            memory: Memory::CPU,
            ready: std::ptr::null_mut(),
            memory_handle: 0,
        }
    }
}

pub trait Outlet {
    /// Memory of the host, at least 64-byte aligned, valid until the response is sent; null and 0 if the output was not
    /// requested.
    fn block(&mut self, output: Output<'_>, bytes: usize) -> Result<(*mut u8, usize), Error>;

    /// # Safety
    /// The memory stays valid and unchanged until it is released.
    unsafe fn donate(&mut self, output: Output<'_>, memory: Donation) -> Result<(), Error>;
}

impl Outlet for Response<'_> {
    fn block(&mut self, output: Output<'_>, bytes: usize) -> Result<(*mut u8, usize), Error> {
        self.output_ptr(output.name, output.kind, output.shape, bytes)
    }

    unsafe fn donate(&mut self, output: Output<'_>, memory: Donation) -> Result<(), Error> {
        let Output { name, kind, shape } = output;
        let parts = [memory.memory()];
        // SAFETY: the caller's promise.
        unsafe { self.adopt_raw(name, kind, shape, &parts, memory.release, memory.owner) }
    }
}

impl Outlet for &Batch<'_> {
    fn block(&mut self, output: Output<'_>, bytes: usize) -> Result<(*mut u8, usize), Error> {
        self.scatter_ptr(output.name, output.kind, output.shape, bytes)
    }

    unsafe fn donate(&mut self, output: Output<'_>, memory: Donation) -> Result<(), Error> {
        let Output { name, kind, shape } = output;
        let part = memory.memory();
        // SAFETY: the caller's promise.
        unsafe { self.scatter_adopt_raw(name, kind, shape, part, memory.release, memory.owner) }
    }
}
