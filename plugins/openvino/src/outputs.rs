//! The outputs of a run: written into blocks of the host where their shape is known before the run,
//! else copied from memory of the library, which uses it again in the next run.

use crate::instance::RunScratch;
use crate::model::LoadedModel;
use crate::network::TensorSlot;
use crate::tensor::Tensor;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{OutputOutlet, OutputTensor, output_shape, requested_position};
use trtserver_framework::shape::{self, MAX_RANK};
use trtserver_framework::types::{element_count, type_size};
use trtserver_plugin_api::author::{Dtype, RequestedOutput};

/// An output of a run.
pub struct RequestedSlot {
    /// Position in the plan.
    pub at: usize,
    /// Address of the host's block that it is written to.
    block: Option<usize>,
}

impl RunScratch {
    /// Adds outputs to those requested of a run, each once.
    ///
    /// # Errors
    /// The model has no such output.
    pub fn add_requested<'a>(
        &mut self,
        model: &LoadedModel,
        outputs: impl Iterator<Item = RequestedOutput<'a>>,
    ) -> Result<(), PluginFault> {
        for output in outputs {
            let at = requested_position(&model.name, &model.plan.outputs, output)?;
            if !self.requested.iter().any(|own| own.at == at) {
                self.requested.push(RequestedSlot { at, block: None });
            }
        }
        Ok(())
    }

    /// Gives a run of `rows` rows memory for its outputs. True: at least one block of the host.
    ///
    /// # Errors
    /// The host's, or the library's.
    pub fn prepare_outputs(
        &mut self,
        model: &LoadedModel,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        preallocate: bool,
    ) -> Result<bool, PluginFault> {
        let rows = model.plan.batching.then_some(rows);
        let mut blocks = false;
        for nth in 0..self.requested.len() {
            let slot = &model.plan.outputs[self.requested[nth].at];
            let mut buffer = [0; MAX_RANK];
            let known = if preallocate { shape::before_run(slot, rows, &mut buffer) } else { None };
            let Some((shape, bytes)) = known else { continue };
            let kind = Dtype::from_abi(slot.dtype);
            let (data, n) = outlet.block(OutputTensor { name: &slot.name, kind, shape }, bytes)?;
            if n < bytes || data.is_null() {
                continue;
            }
            // SAFETY: the block is exclusive until the response is sent, and of this size.
            // `restore_outputs` takes it from the run before the next.
            unsafe {
                let tensor = Tensor::over(self.run.library(), slot.handle, shape, data)?;
                self.run.set_output(slot.handle.index, &tensor)?;
            }
            self.bound.push(slot.handle.index);
            self.requested[nth].block = Some(data.addr());
            blocks = true;
        }
        Ok(blocks)
    }

    /// Gives the outputs that were in blocks of the host their own memory again.
    ///
    /// # Errors
    /// The library's.
    pub fn restore_outputs(&mut self) -> Result<(), PluginFault> {
        while let Some(index) = self.bound.last().copied() {
            if let Some(own) = self.own_outputs.get(index) {
                // SAFETY: the tensor's memory is the library's.
                unsafe { self.run.set_output(index, own)? };
            }
            self.bound.pop();
        }
        Ok(())
    }

    /// Before a run whose errors the library may not report: outputs of the run before must not pass
    /// for those of this one.
    ///
    /// # Errors
    /// The library's.
    pub fn empty_outputs(&mut self, model: &LoadedModel) -> Result<(), PluginFault> {
        if !model.silent {
            return Ok(());
        }
        for (own, declared) in self.own_outputs.iter_mut().zip(&model.signature.outputs) {
            let Some(dims) = declared.dims.as_ref().filter(|dims| dims.contains(&-1)) else {
                continue;
            };
            let mut shape: Vec<i64> = dims.iter().map(|&dim| dim.max(0)).collect();
            own.set_shape(&mut shape)?;
        }
        Ok(())
    }

    /// Passes outputs in memory of the library to the host; those in its blocks are complete.
    /// False: an output in a block has another shape than the block.
    ///
    /// # Errors
    /// An output is not what file and configuration say: the text is complete.
    pub fn pass_outputs(
        &mut self,
        model: &LoadedModel,
        rows: usize,
        outlet: &mut impl OutputOutlet,
    ) -> Result<bool, PluginFault> {
        for requested in &self.requested {
            let slot = &model.plan.outputs[requested.at];
            let within = |fault: PluginFault| {
                fault.within(format_args!("model '{}', output '{}'", model.name, slot.name))
            };
            let rows = model.plan.batching.then_some(rows);
            let mut buffer = [0; MAX_RANK];
            let tensor = self.run.output(slot.handle.index).map_err(within)?;
            if let Some(block) = requested.block {
                if !is_in_block(slot, rows, &tensor, block).map_err(within)? {
                    return Ok(false);
                }
                continue;
            }
            let rank = tensor.shape(&mut buffer).map_err(within)?;
            let shape = output_shape(slot, rows, &mut buffer, rank)
                .map_err(within)
                .inspect_err(|fault| model.findings.stop_merging(&model.log, fault))?;
            copy_output(slot, shape, &tensor, outlet).map_err(within)?;
        }
        Ok(true)
    }
}

/// Whether a run has written all of an output to the block: where its shape is another one, the
/// library uses memory of its own and says nothing.
fn is_in_block(
    slot: &TensorSlot,
    rows: Option<usize>,
    tensor: &Tensor,
    block: usize,
) -> Result<bool, PluginFault> {
    let (mut buffer, mut expected) = ([0; MAX_RANK], [0; MAX_RANK]);
    let rank = tensor.shape(&mut buffer)?;
    let (data, bytes) = tensor.data()?;
    let expected = shape::before_run(slot, rows, &mut expected);
    let fits = expected.is_some_and(|(shape, size)| shape == &buffer[..rank] && size == bytes);
    Ok(fits && (bytes == 0 || data.addr() == block))
}

fn copy_output(
    slot: &TensorSlot,
    shape: &[i64],
    tensor: &Tensor,
    outlet: &mut impl OutputOutlet,
) -> Result<(), PluginFault> {
    let (data, bytes) = tensor.data()?;
    let expected = element_count(shape).and_then(|count| count.checked_mul(type_size(slot.dtype)));
    if expected != Some(bytes) {
        return Err(PluginFault::internal(format!(
            "the library returned {bytes} bytes for shape {}",
            trtserver_framework::types::shape_text(shape)
        )));
    }
    let kind = Dtype::from_abi(slot.dtype);
    let (to, n) = outlet.block(OutputTensor { name: &slot.name, kind, shape }, bytes)?;
    if !to.is_null() && n >= bytes && bytes > 0 {
        // SAFETY: `bytes` bytes of a live tensor; the host's new block does not overlap them.
        unsafe { ptr::copy_nonoverlapping(data, to, bytes) };
    }
    Ok(())
}
