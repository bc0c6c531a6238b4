//! Where outputs go: into the response to one request, or scattered over a batch.

use crate::fault::PluginFault;
use crate::shape::{MAX_RANK, shape_fits};
use crate::slot::{ConfiguredShape, TensorSlot, slot_position};
use crate::types::shape_text;
use trtserver_plugin_api::abi::types::{Buf, Memory};
use trtserver_plugin_api::author::{Batch, Dtype, Error, RequestedOutput, Response};

/// Type, shape and name of an output.
#[derive(Clone, Copy)]
pub struct OutputTensor<'a> {
    pub name: &'a str,
    pub kind: Dtype,
    pub shape: &'a [i64],
}

/// Memory of a framework and what frees it; any thread, once.
#[derive(Clone, Copy)]
pub struct MemoryDonation {
    pub data: *mut u8,
    pub bytes: usize,
    pub memory: Memory,
    pub release: unsafe extern "C" fn(*mut u8),
    pub owner: *mut u8,
}

impl MemoryDonation {
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
    slots: &[TensorSlot<H>],
    requested: RequestedOutput<'_>,
) -> Result<usize, PluginFault> {
    let name = requested.name();
    slot_position(slots, requested.index(), name).ok_or_else(|| {
        PluginFault::invalid(format!("unexpected inference output '{name}' for model '{model}'"))
    })
}

/// The shape of an output for clients, of the first `rank` dimensions in the buffer. `rows`: of the
/// run, if the model batches.
///
/// # Errors
/// The first dimension is not the number of rows. The caller adds which model and output.
pub fn output_shape<'a, H>(
    slot: &TensorSlot<H>,
    rows: Option<usize>,
    buffer: &'a mut [i64; MAX_RANK],
    rank: usize,
) -> Result<&'a [i64], PluginFault> {
    if slot.scalar && rank == 0 {
        buffer[0] = 1;
        return Ok(&buffer[..1]);
    }
    let shape = &buffer[..rank];
    match rows {
        Some(_) if slot.flat => Ok(shape),
        Some(rows) if shape.first() != i64::try_from(rows).ok().as_ref() => {
            Err(PluginFault::internal(format!(
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
pub fn expect_configured<H>(
    model: &str,
    slot: &TensorSlot<H>,
    shape: &[i64],
) -> Result<(), PluginFault> {
    match &slot.configured {
        Some(ConfiguredShape { dims, binding: true, .. }) if !shape_fits(dims, shape) => {
            Err(PluginFault::invalid(format!(
                "output '{}' for model '{model}' has shape {} but model configuration specifies shape {}",
                slot.name,
                shape_text(shape),
                shape_text(dims)
            )))
        }
        _ => Ok(()),
    }
}

pub trait OutputOutlet {
    /// Memory of the host, at least 64-byte aligned, valid until the response is sent; null and 0
    /// if the output was not requested.
    fn block(&mut self, output: OutputTensor<'_>, bytes: usize) -> Result<(*mut u8, usize), Error> {
        let block = self.block_in(output, bytes, Memory::CPU)?;
        Ok((block.ptr, block.bytes as usize))
    }

    /// As [`OutputOutlet::block`], in other memory, such as that of the instance's device; the host
    /// may choose CPU memory all the same.
    fn block_in(
        &mut self,
        output: OutputTensor<'_>,
        bytes: usize,
        memory: Memory,
    ) -> Result<Buf, Error>;

    /// # Safety
    /// The memory stays valid and unchanged until it is released.
    unsafe fn donate(
        &mut self,
        output: OutputTensor<'_>,
        memory: MemoryDonation,
    ) -> Result<(), Error>;
}

impl OutputOutlet for Response<'_> {
    fn block_in(
        &mut self,
        output: OutputTensor<'_>,
        bytes: usize,
        memory: Memory,
    ) -> Result<Buf, Error> {
        self.output_buf(output.name, output.kind, output.shape, bytes, memory)
    }

    unsafe fn donate(
        &mut self,
        output: OutputTensor<'_>,
        memory: MemoryDonation,
    ) -> Result<(), Error> {
        let OutputTensor { name, kind, shape } = output;
        let parts = [memory.part()];
        // SAFETY: the caller's promise.
        unsafe { self.adopt_raw(name, kind, shape, &parts, memory.release, memory.owner) }
    }
}

impl OutputOutlet for &Batch<'_> {
    fn block_in(
        &mut self,
        output: OutputTensor<'_>,
        bytes: usize,
        memory: Memory,
    ) -> Result<Buf, Error> {
        self.scatter_buf(output.name, output.kind, output.shape, bytes, memory)
    }

    unsafe fn donate(
        &mut self,
        output: OutputTensor<'_>,
        memory: MemoryDonation,
    ) -> Result<(), Error> {
        let OutputTensor { name, kind, shape } = output;
        let part = memory.part();
        // SAFETY: the caller's promise.
        unsafe { self.scatter_adopt_raw(name, kind, shape, part, memory.release, memory.owner) }
    }
}
