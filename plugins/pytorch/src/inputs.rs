//! Inputs of a request as torch's tensors: validated first, in place where possible.

use crate::declared::TensorSlot;
use crate::execute::RunScratch;
use crate::model::PyTorchModel;
use crate::tensor::OwnedTensor;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::accept_shape;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::author::{Batch, Request};

/// Compiled code may load vectors of so many bytes at a time.
const ALIGNMENT: usize = 16;

/// An input in one piece: of one request, or gathered over a batch.
struct InputPiece<'a> {
    /// Position in the plan.
    at: usize,
    dtype: u32,
    shape: &'a [i64],
    bytes: &'a [u8],
}

impl RunScratch {
    /// Validates the inputs of a request and makes their tensors.
    pub fn prepare_inputs(
        &mut self,
        model: &PyTorchModel,
        request: Request<'_>,
    ) -> Result<(), PluginFault> {
        self.begin(model);
        for (nth, tensor) in request.inputs().enumerate() {
            let at = self.claims.claim(&model.name, &model.plan.inputs, tensor)?;
            let bytes = match tensor.contiguous() {
                Some(bytes) => bytes,
                None => {
                    let start = self.blocks.gather(tensor, 2 * nth)?;
                    // SAFETY: so many bytes were just gathered there, and the block is not used
                    // again before `clear`, when the request's tensors are gone.
                    unsafe { std::slice::from_raw_parts(start, tensor.byte_size()) }
                }
            };
            let (dtype, shape) = (tensor.dtype().to_abi(), tensor.shape());
            self.add_input(model, &InputPiece { at, dtype, shape, bytes }, 2 * nth + 1)?;
        }
        self.expect_complete(model)
    }

    /// Makes tensors over the gathered inputs of a batch.
    pub fn prepare_gathered(
        &mut self,
        model: &PyTorchModel,
        batch: &Batch<'_>,
    ) -> Result<(), PluginFault> {
        self.begin(model);
        let Some(first) = batch.requests().next() else { return Ok(()) };
        for (nth, tensor) in first.inputs().enumerate() {
            let at = self.claims.claim(&model.name, &model.plan.inputs, tensor)?;
            let gathered = batch.gather(nth)?;
            let (dtype, shape) = (gathered.dtype().to_abi(), gathered.shape());
            let piece = InputPiece { at, dtype, shape, bytes: gathered.bytes() };
            self.add_input(model, &piece, nth)?;
        }
        self.expect_complete(model)
    }

    fn begin(&mut self, model: &PyTorchModel) {
        self.claims.begin(model.plan.inputs.len());
        self.inputs.clear();
        self.inputs.resize(model.package.compiled.n_inputs, ptr::null_mut());
    }

    fn add_input(
        &mut self,
        model: &PyTorchModel,
        piece: &InputPiece<'_>,
        block: usize,
    ) -> Result<(), PluginFault> {
        let slot = &model.plan.inputs[piece.at];
        let mut buffer = [0; MAX_RANK];
        let shape = accept_shape(
            &model.name,
            slot,
            model.plan.batching,
            piece.dtype,
            piece.shape,
            piece.bytes.len(),
            &mut buffer,
        )?;
        expect_bounds(model, slot, shape)?;
        let written = match &model.package.code {
            Some(code) => code[slot.handle.position].written,
            // The package does not say whether the model writes to it.
            None => true,
        };
        let mut data = piece.bytes.as_ptr();
        if written || !data.addr().is_multiple_of(ALIGNMENT) {
            let copy = self.blocks.block(block, piece.bytes.len());
            // SAFETY: the block has so many bytes, and is not the request's memory.
            unsafe { ptr::copy_nonoverlapping(data, copy, piece.bytes.len()) };
            data = copy;
        }
        // SAFETY: the request's bytes and the block are valid until `clear`, which comes after the
        // run; the run takes the tensor.
        let tensor = unsafe {
            OwnedTensor::over(&model.package.compiled.torch, slot.handle.dtype, shape, data)?
        };
        self.inputs[slot.handle.position] = tensor.into_raw();
        let kept = &mut self.shapes[slot.handle.position];
        kept.clear();
        kept.extend_from_slice(shape);
        Ok(())
    }

    /// All inputs are there, and their sizes agree.
    fn expect_complete(&self, model: &PyTorchModel) -> Result<(), PluginFault> {
        self.claims.check_complete(&model.name, &model.plan.inputs, |_| true)?;
        let name = |position: usize| {
            let mut slots = model.plan.inputs.iter();
            slots.find(|slot| slot.handle.position == position).map_or("", |slot| &slot.name)
        };
        let linked = model.package.links.check(&self.shapes, name);
        linked.map_err(|fault| fault.within(format_args!("model '{}'", model.name)))
    }
}

/// # Errors
/// A size is outside of what the model was compiled for.
fn expect_bounds(
    model: &PyTorchModel,
    slot: &TensorSlot,
    shape: &[i64],
) -> Result<(), PluginFault> {
    let Some(code) = &model.package.code else { return Ok(()) };
    let dims = code[slot.handle.position].dims.iter().zip(shape).enumerate();
    let Some((at, (dim, size))) =
        dims.into_iter().find(|(_, (dim, size))| !dim.bounds.allows(**size))
    else {
        return Ok(());
    };
    Err(PluginFault::invalid(format!(
        "input '{}' for model '{}' has shape {}: dimension {at} is {size}, and the model was compiled for {} to {}",
        slot.name,
        model.name,
        shape_text(shape),
        dim.bounds.lower,
        dim.bounds.upper
    )))
}
