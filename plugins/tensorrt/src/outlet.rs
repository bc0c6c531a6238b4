//! Where a run takes its inputs from, a whole batch or one request of it, and how it hands over
//! memory of outputs.

use crate::vtable::TensorShape;
use std::mem::ManuallyDrop;
use trtserver_framework::outlet::{MemoryDonation, OutputOutlet, OutputTensor};
use trtserver_plugin_api::abi::types::{Buf, Memory};
use trtserver_plugin_api::author::{Batch, Error, Event, HostMemory, Request, Tensor};

/// Inputs of a run.
#[derive(Clone, Copy)]
pub enum InputSource<'a, 'b> {
    Batch(&'a Batch<'b>),
    Request(Request<'b>),
}

impl<'b> InputSource<'_, 'b> {
    pub fn rows(self) -> usize {
        match self {
            InputSource::Batch(batch) => batch.rows(),
            InputSource::Request(request) => request.batch_size(),
        }
    }

    /// The request whose inputs stand for all.
    pub fn first(self) -> Option<Request<'b>> {
        match self {
            InputSource::Batch(batch) => batch.requests().next(),
            InputSource::Request(request) => Some(request),
        }
    }

    /// An input in memory of the device, in one block.
    ///
    /// # Errors
    /// The inputs of the requests cannot be joined, or there is no memory for that.
    pub fn input(self, position: usize, tensor: Tensor<'b>, memory: Memory) -> Result<Buf, Error> {
        let request = match self {
            InputSource::Batch(batch) => return batch.gather_buf(position, memory, None),
            InputSource::Request(_) => tensor,
        };
        match request.raw_parts() {
            [one] if one.memory == memory => Ok(*one),
            _ if tensor.byte_size() == 0 => Ok(no_memory(memory)),
            parts => Err(Error::internal(format_args!(
                "input '{}' is in {} parts, expected one in the memory of the GPU",
                tensor.name(),
                parts.len()
            ))),
        }
    }
}

/// Hands over device memory that the run writes, which is freed once `written` is reached and the
/// host has read it.
///
/// # Errors
/// The output does not agree with its declaration.
pub fn adopt_memory(
    outlet: &mut dyn OutputOutlet,
    output: OutputTensor<'_>,
    bytes: usize,
    memory: HostMemory,
    written: Event,
) -> Result<(), Error> {
    let (data, location) = (memory.as_ptr(), memory.memory());
    let owner = Box::new(AdoptedMemory(ManuallyDrop::new((memory, written))));
    let owner = Box::into_raw(owner).cast();
    // SAFETY: the memory is owned by the box until `release`.
    unsafe {
        outlet.donate(output, MemoryDonation { data, bytes, memory: location, release, owner })
    }
}

fn no_memory(memory: Memory) -> Buf {
    let (ptr, ready) = (std::ptr::null_mut(), std::ptr::null_mut());
    Buf { ptr, bytes: 0, memory, ready, memory_handle: 0 }
}

/// Memory that a run may still write when the host releases it, because no request asked for the
/// output.
struct AdoptedMemory(ManuallyDrop<(HostMemory, Event)>);

impl Drop for AdoptedMemory {
    fn drop(&mut self) {
        // SAFETY: taken once.
        let (memory, written) = unsafe { ManuallyDrop::take(&mut self.0) };
        memory.free_after(written);
    }
}

/// # Safety
/// `owner` is the box of [`adopt_memory`], released once.
unsafe extern "C" fn release(owner: *mut u8) {
    // SAFETY: by the caller's promise.
    drop(unsafe { Box::from_raw(owner.cast::<AdoptedMemory>()) });
}

/// Bytes of a tensor of this shape; `None` if a dimension is unknown or the size does not fit.
pub fn shape_bytes(shape: &TensorShape, dtype: u32) -> Option<usize> {
    let elements = trtserver_framework::types::element_count(shape.dims())?;
    elements.checked_mul(trtserver_framework::types::type_size(dtype))
}
