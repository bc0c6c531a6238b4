//! Inputs of a request, checked against the model: names, types, shapes, sizes; and their bytes in
//! one aligned block.

use crate::fault::PluginFault;
use crate::shape::{self, MAX_RANK};
use crate::slot::{TensorSlot, slot_position};
use crate::types::{element_count, shape_text, type_name, type_size};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::Tensor;

/// Which inputs of the model a request has given.
#[derive(Default)]
pub struct InputClaims(Vec<bool>);

impl InputClaims {
    /// For a request to a model of `n` inputs.
    pub fn begin(&mut self, n: usize) {
        self.0.clear();
        self.0.resize(n, false);
    }

    /// Position of the model's input for a tensor of the request; each may be claimed once.
    pub fn claim<H>(
        &mut self,
        model: &str,
        slots: &[TensorSlot<H>],
        tensor: Tensor<'_>,
    ) -> Result<usize, PluginFault> {
        let name = tensor.name();
        let at = slot_position(slots, tensor.index(), name).ok_or_else(|| {
            PluginFault::invalid(format!("unexpected inference input '{name}' for model '{model}'"))
        })?;
        if std::mem::replace(&mut self.0[at], true) {
            return Err(PluginFault::invalid(format!(
                "input '{name}' for model '{model}' is given twice"
            )));
        }
        Ok(at)
    }

    /// # Errors
    /// Names the first input that `is_required` and was not claimed.
    pub fn check_complete<H>(
        &self,
        model: &str,
        slots: &[TensorSlot<H>],
        is_required: impl Fn(&TensorSlot<H>) -> bool,
    ) -> Result<(), PluginFault> {
        let mut unclaimed = slots.iter().zip(&self.0).filter(|(_, claimed)| !**claimed);
        match unclaimed.find(|(slot, _)| is_required(slot)) {
            None => Ok(()),
            Some((slot, _)) => Err(PluginFault::invalid(format!(
                "input '{}' is required by model '{model}' and was not given",
                slot.name
            ))),
        }
    }
}

/// The shape in which the model takes an input of this type, shape and size.
pub fn accept_shape<'a, H>(
    model: &str,
    slot: &TensorSlot<H>,
    batching: bool,
    kind: u32,
    given: &'a [i64],
    bytes: usize,
    buffer: &'a mut [i64; MAX_RANK],
) -> Result<&'a [i64], PluginFault> {
    if kind != slot.dtype {
        return Err(PluginFault::invalid(format!(
            "inference input '{}' data-type is '{}', model '{model}' expects '{}'",
            slot.name,
            type_name(kind),
            type_name(slot.dtype)
        )));
    }
    let shape = shape::for_model(slot, batching, given, buffer).ok_or_else(|| {
        PluginFault::invalid(format!(
            "unexpected shape for input '{}' for model '{model}'. Expected {}, got {}",
            slot.name,
            shape_text(&slot.dims),
            shape_text(given)
        ))
    })?;
    let expected = element_count(shape).and_then(|n| n.checked_mul(type_size(slot.dtype)));
    if slot.dtype != dtype::STRING && expected != Some(bytes) {
        return Err(PluginFault::invalid(format!(
            "unexpected total byte size {bytes} for input '{}' of model '{model}' with shape {}, \
             expecting {}",
            slot.name,
            shape_text(shape),
            expected.map_or_else(|| "less".to_owned(), |n| n.to_string())
        )));
    }
    Ok(shape)
}

/// Copies the parts of an input to a buffer of its size.
pub fn copy_parts(tensor: Tensor<'_>, mut to: &mut [u8]) -> Result<(), PluginFault> {
    let total: usize = tensor.parts().map(<[u8]>::len).sum();
    if total != to.len() {
        return Err(PluginFault::internal(format!(
            "input '{}': only {total} of {} bytes are in CPU memory",
            tensor.name(),
            to.len()
        )));
    }
    for part in tensor.parts() {
        let (start, rest) = to.split_at_mut(part.len());
        start.copy_from_slice(part);
        to = rest;
    }
    Ok(())
}

/// A cache line: blocks of lines are aligned as frameworks want tensors to be.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct CacheLine {
    _bytes: [u8; 64],
}

impl CacheLine {
    pub const EMPTY: CacheLine = CacheLine { _bytes: [0; 64] };
}

/// Blocks for inputs that cannot be used where they are. Small ones are kept from request to
/// request.
#[derive(Default)]
pub struct InputBlocks(Vec<Vec<CacheLine>>);

/// A block larger than this is freed after its request.
const MAX_RETAINED_BYTES: usize = 1 << 20;

impl InputBlocks {
    /// Block `nth` with space for `bytes` bytes, zeroed, at the address returned. Valid until its
    /// next use or [`InputBlocks::trim`].
    pub fn block(&mut self, nth: usize, bytes: usize) -> *mut u8 {
        if self.0.len() <= nth {
            self.0.resize_with(nth + 1, Vec::new);
        }
        let block = &mut self.0[nth];
        block.clear();
        block.resize(bytes.div_ceil(size_of::<CacheLine>()), CacheLine::EMPTY);
        block.as_mut_ptr().cast()
    }

    /// The bytes of an input in block `nth`.
    pub fn gather(&mut self, tensor: Tensor<'_>, nth: usize) -> Result<*mut u8, PluginFault> {
        let bytes = tensor.byte_size();
        let start = self.block(nth, bytes);
        // SAFETY: the block is large enough and initialised.
        copy_parts(tensor, unsafe { std::slice::from_raw_parts_mut(start, bytes) })?;
        Ok(start)
    }

    /// Frees large blocks.
    pub fn trim(&mut self) {
        self.0.retain(|block| block.capacity() * size_of::<CacheLine>() <= MAX_RETAINED_BYTES);
    }
}
