//! Where outputs go: into the response to one request, or scattered over a batch.

use crate::fault::Fault;
use crate::shape::{MAX_RANK, fits};
use crate::slot::{ConfiguredShape, Slot, position};
use crate::types::shape_text;
use trtserver_plugin_api::abi::types::{Buf, Memory};
use trtserver_plugin_api::author::{Batch, Dtype, Error, RequestedOutput, Response};

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
    pub memory: Memory,
    pub release: unsafe extern "C" fn(*mut u8),
    pub owner: *mut u8,
}

impl Donation {
    fn part(&self) -> Buf {
        Buf {
            ptr: self.data,
            bytes: self.bytes as u64,
            memory: self.memory,
            ready: std::ptr::null_mut(),
            memory_handle: 0,
        }
    }
}

/// Position of a requested output among the model's.
pub fn requested_position<H>(
    model: &str,
    slots: &[Slot<H>],
    requested: RequestedOutput<'_>,
) -> Result<usize, Fault> {
    let name = requested.name();
    position(slots, requested.index(), name).ok_or_else(|| {
        Fault::invalid(format!("unexpected inference output '{name}' for model '{model}'"))
    })
}

/// The shape of an output for clients, of the first `rank` dimensions in the buffer. `rows`: of the run, if the model batches.
///
/// # Errors
/// The first dimension is not the number of rows. The caller adds which model and output.
pub fn output_shape<'a, H>(
    slot: &Slot<H>,
    rows: Option<usize>,
    buffer: &'a mut [i64; MAX_RANK],
    rank: usize,
) -> Result<&'a [i64], Fault> {
    if slot.scalar && rank == 0 {
        buffer[0] = 1;
        return Ok(&buffer[..1]);
    }
    let shape = &buffer[..rank];
    match rows {
        Some(_) if slot.flat => Ok(shape),
        Some(rows) if shape.first() != i64::try_from(rows).ok().as_ref() => {
            Err(Fault::internal(format!(
                "expected a first dimension of {rows}, the number of rows of the run, found shape {}; a model whose \
                 first dimension is not a batch needs max_batch_size: 0",
                shape_text(shape)
            )))
        }
        _ => Ok(shape),
    }
}

/// # Errors
/// The configuration gives the output another shape than a run returned: the text is complete.
pub fn expect_configured<H>(model: &str, slot: &Slot<H>, shape: &[i64]) -> Result<(), Fault> {
    match &slot.configured {
        Some(ConfiguredShape { dims, binding: true, .. }) if !fits(dims, shape) => {
            Err(Fault::invalid(format!(
                "output '{}' for model '{model}' has shape {} but model configuration specifies shape {}",
                slot.name,
                shape_text(shape),
                shape_text(dims)
            )))
        }
        _ => Ok(()),
    }
}

pub trait Outlet {
    /// Memory of the host, at least 64-byte aligned, valid until the response is sent; null and 0 if the output was not
    /// requested.
    fn block(&mut self, output: Output<'_>, bytes: usize) -> Result<(*mut u8, usize), Error> {
        let block = self.block_in(output, bytes, Memory::CPU)?;
        Ok((block.ptr, block.bytes as usize))
    }

    /// As [`Outlet::block`], in other memory, such as that of the instance's device; the host may choose CPU memory all the
    /// same.
    fn block_in(&mut self, output: Output<'_>, bytes: usize, memory: Memory) -> Result<Buf, Error>;

    /// # Safety
    /// The memory stays valid and unchanged until it is released.
    unsafe fn donate(&mut self, output: Output<'_>, memory: Donation) -> Result<(), Error>;
}

impl Outlet for Response<'_> {
    fn block_in(&mut self, output: Output<'_>, bytes: usize, memory: Memory) -> Result<Buf, Error> {
        self.output_buf(output.name, output.kind, output.shape, bytes, memory)
    }

    unsafe fn donate(&mut self, output: Output<'_>, memory: Donation) -> Result<(), Error> {
        let Output { name, kind, shape } = output;
        let parts = [memory.part()];
        // SAFETY: the caller's promise.
        unsafe { self.adopt_raw(name, kind, shape, &parts, memory.release, memory.owner) }
    }
}

impl Outlet for &Batch<'_> {
    fn block_in(&mut self, output: Output<'_>, bytes: usize, memory: Memory) -> Result<Buf, Error> {
        self.scatter_buf(output.name, output.kind, output.shape, bytes, memory)
    }

    unsafe fn donate(&mut self, output: Output<'_>, memory: Donation) -> Result<(), Error> {
        let Output { name, kind, shape } = output;
        let part = memory.part();
        // SAFETY: the caller's promise.
        unsafe { self.scatter_adopt_raw(name, kind, shape, part, memory.release, memory.owner) }
    }
}
